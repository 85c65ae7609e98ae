import { explainRule } from '../explanations.ts'
import { formatCell, formatDay } from '../format.ts'
import type { PublishedRun } from '../published-run.ts'
import { codePath } from './code-path.ts'
import { html, type Markup } from './markup.ts'

const MOST_ROWS = 100

/** What made records equivalent, the partner's own rules, and the noise of V2. */
export function sectionRules(run: PublishedRun): Markup {
  return html`${equivalences(run)}${ownRules(run)}${noise(run)}`
}

function equivalences({ equivalences: rules, verdicts }: PublishedRun): Markup | undefined {
  if (rules.length === 0) return undefined
  return html`<section aria-labelledby="equivalences">
    <h2 id="equivalences">What counts as equivalent</h2>
    <p class="lead">
      ${formatCell(verdicts.equivalent)} records are written differently and mean the same by these rules. A
      record can need several.
    </p>
    ${table(
      'Equivalences',
      ['Rule', 'Meaning', 'Field'],
      rules.length,
      html`${rules.slice(0, MOST_ROWS).map(
        ({ rule, path, count }) =>
          html`<tr>
            <th scope="row"><code>${rule}</code></th>
            <td>${explainRule(rule) ?? 'a rule of the partner’s own'}</td>
            <td>${codePath(path)}</td>
            <td class="n">${formatCell(count)}</td>
          </tr>`,
      )}`,
    )}
  </section>`
}

function ownRules({ ownRules: rules }: PublishedRun): Markup | undefined {
  if (rules.length === 0) return undefined
  return html`<section aria-labelledby="own-rules">
    <h2 id="own-rules">Own rules of the partner</h2>
    ${table(
      'Own rules',
      ['Rule', 'Field', 'Reason', 'Owner', 'Counts until'],
      rules.length,
      html`${rules.slice(0, MOST_ROWS).map(
        ({ name, path, reason, owner, expires, expired, count }) =>
          html`<tr>
            <th scope="row">${name}</th>
            <td>${codePath(path)}</td>
            <td>${reason}</td>
            <td>${owner}</td>
            <td>${formatDay(expires)}${expired && html` <strong class="expired">expired</strong>`}</td>
            <td class="n">${formatCell(count)}</td>
          </tr>`,
      )}`,
    )}
  </section>`
}

function noise({ noise: { differences } }: PublishedRun): Markup | undefined {
  if (differences.length === 0) return undefined
  return html`<section aria-labelledby="noise">
    <h2 id="noise">Noise: V2 against itself</h2>
    <p class="lead">V2 was read twice. In these fields it differs from itself, so they say nothing of V3.</p>
    ${table(
      'Noise',
      ['Field', 'Kind'],
      differences.length,
      html`${differences.slice(0, MOST_ROWS).map(
        ({ path, kind, count }) =>
          html`<tr>
            <th scope="row">${codePath(path)}</th>
            <td>${kind}</td>
            <td class="n">${formatCell(count)}</td>
          </tr>`,
      )}`,
    )}
  </section>`
}

function table(name: string, headings: readonly string[], rows: number, body: Markup): Markup {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${name}">
      <table>
        <thead>
          <tr>
            ${headings.map((heading) => html`<th scope="col">${heading}</th>`)}
            <th scope="col" class="n">Records</th>
          </tr>
        </thead>
        <tbody>
          ${body}
        </tbody>
      </table>
    </div>
    ${rows > MOST_ROWS && html`<p class="note">${rows - MOST_ROWS} more are in the report as CSV or JSON.</p>`}`
}
