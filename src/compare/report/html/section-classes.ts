import { explain } from '../explanations.ts'
import { type Finding, findingsOf } from '../findings.ts'
import { formatCell, formatShare } from '../format.ts'
import { leastOf, type PublishedRun } from '../published-run.ts'
import { bar } from './chart-bars.ts'
import { codePath } from './code-path.ts'
import { html, type Markup } from './markup.ts'

const MOST_EXPLAINED = 10
const MOST_LISTED = 200

/** The largest classes of difference with what they mean and what to do, then the others as a table. */
export function sectionClasses(run: PublishedRun): Markup {
  const findings = findingsOf(run)
  if (findings.length === 0)
    return html`<section aria-labelledby="classes">
      <h2 id="classes">Differences</h2>
      <p class="lead">No record differs.</p>
    </section>`
  const explained = findings.slice(0, MOST_EXPLAINED)
  const most = Math.max(1, ...explained.map(({ count }) => leastOf(count)))
  return html`<section aria-labelledby="classes">
    <h2 id="classes">What differs, and what to do</h2>
    <p class="lead">
      ${
        findings.length > MOST_EXPLAINED
          ? `The ten largest of ${findings.length} classes.`
          : findings.length === 1
            ? 'One class of differences.'
            : `${findings.length} classes of differences.`
      }
      A class describes values without showing them.
    </p>
    <ol class="classes">
      ${explained.map((finding) => explainClass(finding, run, most))}
    </ol>
    ${findings.length > MOST_EXPLAINED && otherClasses(findings.slice(MOST_EXPLAINED))}
  </section>`
}

function explainClass(finding: Finding, { compared }: PublishedRun, most: number): Markup {
  const { title, meaning, cause, remedy } = explain(finding)
  return html`<li>
    <article>
      <div class="size">
        <p class="count">${formatCell(finding.count)}</p>
        <p class="note">${shareOf(finding, compared)}</p>
        ${bar([{ name: styleOf(finding), count: finding.count }], most)}
      </div>
      <div class="what">
        <h3>${title}</h3>
        <p class="class">${nameOf(finding)}</p>
        <p>${meaning}</p>
      </div>
      <dl class="why">
        <dt>Likely cause</dt>
        <dd>${cause}</dd>
        <dt>What to do</dt>
        <dd>${remedy}</dd>
      </dl>
    </article>
  </li>`
}

const shareOf = ({ count }: Finding, compared: PublishedRun['compared']): string => {
  const share = formatShare(count, compared)
  return share === undefined ? 'records' : `records, ${share.replaceAll(' ', '\u00a0')}`
}

const styleOf = ({ kind }: Finding): string =>
  kind === 'onlyV2' || kind === 'onlyV3' || kind === 'unknown' ? kind : 'differs'

const rowNames: Partial<Readonly<Record<Finding['kind'], string>>> = {
  onlyV2: 'only in V2',
  onlyV3: 'only in V3',
  unknown: 'unknown',
}

function nameOf(finding: Finding): Markup {
  const { path, kind, v2Class, v3Class } = finding
  const name = rowNames[kind]
  if (name !== undefined) return html`<span class="kind">${name}</span>`
  return html`${codePath(path)} <span class="kind">${kind}</span>
    <span class="pair"
      >V2 <code>${v2Class}</code> <span class="hidden">and</span><span aria-hidden="true">→</span> V3
      <code>${v3Class}</code></span
    >`
}

function otherClasses(findings: readonly Finding[]): Markup {
  const listed = findings.slice(0, MOST_LISTED)
  return html`<details>
    <summary>Table: the other ${findings.length === 1 ? 'class' : `${findings.length} classes`}</summary>
    <div class="scroll" tabindex="0" role="region" aria-label="Other classes of differences">
      <table>
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Kind</th>
            <th scope="col">V2</th>
            <th scope="col">V3</th>
            <th scope="col">Meaning</th>
            <th scope="col" class="n">Records</th>
          </tr>
        </thead>
        <tbody>
          ${listed.map(
            (finding) =>
              html`<tr>
                <th scope="row">${codePath(finding.path)}</th>
                <td>${rowNames[finding.kind] ?? finding.kind}</td>
                <td><code>${finding.v2Class}</code></td>
                <td><code>${finding.v3Class}</code></td>
                <td>${explain(finding).title}</td>
                <td class="n">${formatCell(finding.count)}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${findings.length > MOST_LISTED && html`<p class="note">${findings.length - MOST_LISTED} more classes are in the report as CSV or JSON.</p>`}
  </details>`
}
