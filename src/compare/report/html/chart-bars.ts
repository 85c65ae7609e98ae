import { formatCell, formatShare } from '../format.ts'
import {
  addCounts,
  leastOf,
  type PublishedCount,
  type PublishedGroup,
  type PublishedRun,
} from '../published-run.ts'
import { verdicts as allVerdicts } from '../../verdict.ts'
import { codePath } from './code-path.ts'
import { className, kindName } from './group-names.ts'
import { type Content, html, type Markup } from './markup.ts'
import { attention, legend } from './verdict-style.ts'
import { verdictTable } from './verdict-table.ts'

const MOST_FIELDS = 12

/** The fields with the most differences; a record that differs in two fields counts in both. */
export function chartFields({ differences }: PublishedRun): Markup | undefined {
  const fields = [...Map.groupBy(differences, ({ path }) => path)]
    .map(([path, classes]) => ({
      path,
      classes: classes.length,
      count: addCounts(classes.map(({ count }) => count)),
    }))
    .sort((one, other) => leastOf(other.count) - leastOf(one.count))
  const shown = fields.slice(0, MOST_FIELDS)
  const most = Math.max(1, ...shown.map(({ count }) => leastOf(count)))
  if (shown.length === 0) return undefined
  return html`<figure class="chart">
    <figcaption>
      <h3>By field</h3>
      <p>
        Records that differ in a field. A record that differs in two counts in
        both.${fields.length > shown.length && ` The ${MOST_FIELDS} largest of ${fields.length} fields.`}
      </p>
    </figcaption>
    <table class="bars">
      <thead>
        <tr>
          <th scope="col">Field</th>
          <th scope="col"><span class="hidden">Chart</span></th>
          <th scope="col" class="n">Records</th>
          <th scope="col" class="n">Classes</th>
        </tr>
      </thead>
      <tbody>
        ${shown.map(
          ({ path, classes, count }) =>
            html`<tr>
              <th scope="row">${codePath(path)}</th>
              <td class="plot">${bar([{ name: 'differs', count }], most)}</td>
              <td class="n">${formatCell(count)}</td>
              <td class="n">${classes}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </figure>`
}

/** Records that ask for attention by class of the attendance code. */
export function chartCodeClasses({ codeClasses }: PublishedRun): Markup | undefined {
  return chartGroups('By code class', 'Class', codeClasses, className)
}

/** The same by kind of record or request. */
export function chartKinds({ kinds }: PublishedRun): Markup | undefined {
  return chartGroups('By kind', 'Kind', kinds, kindName)
}

function chartGroups(
  title: string,
  heading: string,
  groups: readonly PublishedGroup[],
  nameOf: (name: string) => string,
): Markup | undefined {
  if (groups.length === 0) return undefined
  const rows = groups.map(({ name, verdicts }) => ({
    name: nameOf(name),
    parts: attention.map(({ verdict }) => ({ name: verdict, count: verdicts[verdict] })),
    total: addCounts(allVerdicts.map((verdict) => verdicts[verdict])),
  }))
  const most = Math.max(
    1,
    ...rows.map(({ parts }) => parts.reduce((sum, { count }) => sum + leastOf(count), 0)),
  )
  const seen = attention.filter(({ verdict }) => groups.some(({ verdicts }) => verdicts[verdict] !== 0))
  return html`<figure class="chart">
    <figcaption>
      <h3>${title}</h3>
      <p>Records that ask for attention, and their share.</p>
    </figcaption>
    ${seen.length > 0 && legend(seen)}
    <table class="bars">
      <thead>
        <tr>
          <th scope="col">${heading}</th>
          <th scope="col"><span class="hidden">Chart</span></th>
          <th scope="col" class="n">Records</th>
          <th scope="col" class="n">Share</th>
        </tr>
      </thead>
      <tbody>
        ${rows.map(({ name, parts, total }) => {
          const sum = addCounts(parts.map(({ count }) => count))
          return html`<tr>
            <th scope="row">${name}</th>
            <td class="plot">${bar(parts, most)}</td>
            <td class="n">${formatCell(sum)}</td>
            <td class="n">${formatShare(sum, total) ?? '–'}</td>
          </tr>`
        })}
      </tbody>
    </table>
    <details>
      <summary>Table: verdicts ${title.toLowerCase()}</summary>
      ${verdictTable(heading, groups, nameOf)}
    </details>
  </figure>`
}

/** One horizontal bar of one or more parts; the figures stand beside it. */
export function bar(
  parts: readonly { readonly name: string; readonly count: PublishedCount }[],
  most: number,
): Markup {
  let x = 0
  const rects: Content[] = parts.map(({ name, count }) => {
    const least = leastOf(count)
    if (least === 0) return undefined
    const width = Math.max(1.2, (least / most) * 100)
    const start = Math.min(x, 100 - width)
    x += width
    return html`<rect
      class="f-${name} edge"
      x="${start.toFixed(2)}%"
      width="${width.toFixed(2)}%"
      height="100%"
    />`
  })
  return html`<svg class="hbar" aria-hidden="true" focusable="false">${rects}</svg>`
}
