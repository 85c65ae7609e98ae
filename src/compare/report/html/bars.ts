import { type Verdict, verdicts, verdictTexts } from '../../verdict.ts'
import { html, type Markup } from './markup.ts'

/** The verdicts that ask for attention, in the order in which charts stack them. */
export const attention: readonly Verdict[] = verdicts.slice(2)

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

/** The colour and the pattern of a verdict, before its name. */
export const swatch = (verdict: Verdict): Markup =>
  html`<svg class="swatch" aria-hidden="true" focusable="false">
    <rect class="f-${verdict}" width="100%" height="100%" />
  </svg>`

/** What a chart's colours and patterns stand for. */
export function legend(shown: readonly Verdict[]): Markup {
  return html`<ul class="legend">
    ${shown.map((verdict) => html`<li>${swatch(verdict)}${verdictTexts[verdict].label}</li>`)}
  </ul>`
}

export interface BarPart {
  /** The name of its style. */
  readonly name: string
  readonly count: number
}

/** One horizontal bar of the width that `most` has as 100 %; a part with a record never vanishes. `label` describes it where no figures stand beside it. */
export function bar(parts: readonly BarPart[], most: number, label?: string): Markup {
  const shown = parts.filter(({ count }) => count > 0)
  const widths = shown.map(({ count }) => Math.max(1.2, (count / most) * 100))
  const fit = Math.min(1, 100 / widths.reduce((sum, width) => sum + width, 0))
  let x = 0
  const rects = shown.map(({ name }, index) => {
    const width = (widths[index] ?? 0) * fit
    const start = x
    x += width
    return html`<rect
      class="f-${name} edge"
      x="${start.toFixed(2)}%"
      width="${width.toFixed(2)}%"
      height="100%"
    />`
  })
  return label === undefined
    ? html`<svg class="hbar" aria-hidden="true" focusable="false">${rects}</svg>`
    : html`<svg class="bar" role="img" aria-label="${label}" focusable="false">${rects}</svg>`
}
