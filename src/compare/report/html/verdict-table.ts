import { formatCell } from '../format.ts'
import type { PublishedGroup } from '../published-run.ts'
import { html, type Markup } from './markup.ts'
import { verdictStyles } from './verdict-style.ts'

/** Groups as rows, verdicts as columns. */
export function verdictTable(
  heading: string,
  groups: readonly PublishedGroup[],
  nameOf: (name: string) => string = (name) => name,
): Markup {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${heading}: verdicts">
    <table>
      <thead>
        <tr>
          <th scope="col">${heading}</th>
          ${verdictStyles.map(({ label }) => html`<th scope="col" class="n">${label}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${groups.map(
          ({ name, verdicts }) =>
            html`<tr>
              <th scope="row">${nameOf(name)}</th>
              ${verdictStyles.map(
                ({ verdict }) =>
                  html`<td class="n${verdicts[verdict] === 0 && ' zero'}">
                    ${formatCell(verdicts[verdict])}
                  </td>`,
              )}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}
