import type { Verdict } from '../../verdict.ts'
import { html, type Markup } from './markup.ts'

/** How a verdict is named and drawn. Patterns tell them apart without colours. */
interface VerdictStyle {
  readonly verdict: Verdict
  readonly label: string
  readonly meaning: string
}

export const verdictStyles: readonly VerdictStyle[] = [
  { verdict: 'same', label: 'Same', meaning: 'every field is equal' },
  {
    verdict: 'equivalent',
    label: 'Equivalent',
    meaning: 'fields are written differently and mean the same by a named rule',
  },
  { verdict: 'differs', label: 'Differs', meaning: 'at least one field has another meaning' },
  { verdict: 'onlyV2', label: 'Only in V2', meaning: 'V3 through the adapter does not have the record' },
  { verdict: 'onlyV3', label: 'Only in V3', meaning: 'V2 does not have the record' },
  { verdict: 'unknown', label: 'Unknown', meaning: 'one side gave no answer that can be compared' },
]

/** The verdicts that ask for attention, in the order in which charts stack them. */
export const attention: readonly VerdictStyle[] = verdictStyles.slice(2)

/** The patterns that charts fill with; one for the whole page. None is turned: a browser prints such a one as an image of the whole page. */
export const patterns: Markup = html`<svg class="defs" aria-hidden="true" focusable="false">
  <defs>
    <pattern id="p-equivalent" width="6" height="6" patternUnits="userSpaceOnUse">
      <rect class="c-equivalent" width="6" height="6" />
      <path class="ink" d="M0 3h6" />
    </pattern>
    <pattern id="p-onlyV2" width="8" height="8" patternUnits="userSpaceOnUse">
      <rect class="c-onlyV2" width="8" height="8" />
      <path class="ink" d="M-2 2l4-4M-1 9L9-1M6 10l4-4" />
    </pattern>
    <pattern id="p-onlyV3" width="8" height="8" patternUnits="userSpaceOnUse">
      <rect class="c-onlyV3" width="8" height="8" />
      <path class="ink" d="M-1 9L9-1M-1-1L9 9" />
    </pattern>
    <pattern id="p-unknown" width="6" height="6" patternUnits="userSpaceOnUse">
      <rect class="c-unknown" width="6" height="6" />
      <circle class="dot" cx="3" cy="3" r="1.3" />
    </pattern>
  </defs>
</svg>`

/** What a chart's colours and patterns stand for. */
export function legend(styles: readonly VerdictStyle[]): Markup {
  return html`<ul class="legend">
    ${styles.map(
      ({ verdict, label }) =>
        html`<li>
          <svg class="swatch" aria-hidden="true" focusable="false">
            <rect class="f-${verdict}" width="100%" height="100%" /></svg
          >${label}
        </li>`,
    )}
  </ul>`
}
