import type { CountedGroup } from '../../run-document.ts'
import { verdicts, verdictTexts } from '../../verdict.ts'
import { formatCount } from '../format.ts'
import { bar, type BarPart } from './bars.ts'
import { type Content, html, type Markup } from './markup.ts'

/** A path of member names, which may break after each slash. */
export function codePath(path: string): Markup {
  const [first = '', ...others] = path.split('/')
  return html`<code>${first}${others.map((name) => html`/<wbr />${name}`)}</code>`
}

/** A table that scrolls by itself. The first cell of a row is its header; `numbers` of the last columns are aligned to the right. */
export function scrollTable(
  name: string,
  headings: readonly string[],
  numbers: number,
  rows: readonly (readonly Content[])[],
): Markup {
  const isNumber = (column: number): boolean => column >= headings.length - numbers
  const cell = (content: Content, column: number): Markup => {
    if (column === 0) return html`<th scope="row">${content}</th>`
    if (!isNumber(column)) return html`<td>${content}</td>`
    return html`<td class="n${content === '0' && ' zero'}">${content}</td>`
  }
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${name}">
    <table>
      <thead>
        <tr>
          ${headings.map(
            (heading, column) =>
              html`<th scope="col" ${isNumber(column) && html` class="n"`}>${heading}</th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (cells) =>
            html`<tr>
              ${cells.map(cell)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}

/** Groups as rows, verdicts as columns. */
export function verdictTable(
  heading: string,
  groups: readonly CountedGroup[],
  nameOf: (name: string) => string,
): Markup {
  return scrollTable(
    `${heading}: verdicts`,
    [heading, ...verdicts.map((verdict) => verdictTexts[verdict].label)],
    verdicts.length,
    groups.map((group) => [
      nameOf(group.name),
      ...verdicts.map((verdict) => formatCount(group.verdicts[verdict])),
    ]),
  )
}

/** A table whose second column is a bar of one or more parts; the figures stand beside it. */
export function barTable(
  headings: readonly [name: string, first: string, second: string],
  rows: readonly {
    readonly name: Content
    readonly parts: readonly BarPart[]
    readonly cells: readonly [first: string, second: string]
  }[],
): Markup {
  const most = Math.max(1, ...rows.map(({ parts }) => parts.reduce((sum, { count }) => sum + count, 0)))
  const [name, first, second] = headings
  return html`<table class="bars">
    <thead>
      <tr>
        <th scope="col">${name}</th>
        <th scope="col"><span class="hidden">Chart</span></th>
        <th scope="col" class="n">${first}</th>
        <th scope="col" class="n">${second}</th>
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr>
            <th scope="row">${row.name}</th>
            <td class="plot">${bar(row.parts, most)}</td>
            ${row.cells.map((text) => html`<td class="n">${text}</td>`)}
          </tr>`,
      )}
    </tbody>
  </table>`
}
