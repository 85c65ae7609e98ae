import type { CountedGroup } from '../../run-document.ts'
import { type Verdict, verdicts, verdictTexts } from '../../verdict.ts'
import { formatCount, formatLongDay } from '../format.ts'
import { type Content, html, type Markup } from './markup.ts'

/** The verdicts that need attention (all except `same` and `equivalent`), in the order in which charts stack them. */
const attention: readonly Verdict[] = verdicts.slice(2)

export const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0)

export const attentionOf = ({ verdicts: counts }: CountedGroup): readonly BarPart[] =>
  attention.map((verdict) => ({ name: verdict, count: counts[verdict] }))

interface BarPart {
  readonly name: string
  readonly count: number
}

export const lengthOf = (parts: readonly BarPart[]): number => sumOf(parts.map(({ count }) => count))

/**
 * Draws a bar whose full width stands for `most` records. Every part with a record has a visible width. `label` is the text for screen
 * readers. Screen readers skip a bar without a label.
 */
export function bar(parts: readonly BarPart[], most: number, label?: string): Markup {
  const shown = parts.filter(({ count }) => count > 0)
  const widths = shown.map(({ count }) => Math.max(0.4, (count / most) * 100))
  const fit = Math.min(1, 100 / sumOf(widths))
  let x = 0
  const rects = shown.map(({ name }, index) => {
    const width = (widths[index] ?? 0) * fit
    x += width
    return rectangle(name, x - width, 0, width, 100)
  })
  const role = label === undefined ? html`aria-hidden="true"` : html`role="img" aria-label="${label}"`
  return html`<svg class="bar" ${role} focusable="false">${rects}</svg>`
}

function rectangle(
  name: string,
  xPercent: number,
  yPercent: number,
  widthPercent: number,
  heightPercent: number,
): Markup {
  const [left, top, across, down] = [xPercent, yPercent, widthPercent, heightPercent].map(
    (value) => `${value.toFixed(2)}%`,
  )
  return html`<rect class="f-${name}" x="${left}" y="${top}" width="${across}" height="${down}" />`
}

export function legendOf(groups: readonly CountedGroup[]): Markup {
  const shown = attention.filter((verdict) => groups.some((group) => group.verdicts[verdict] > 0))
  return html`<ul class="legend">
    ${shown.map((verdict) => html`<li>${swatch(verdict)}${verdictTexts[verdict].label}</li>`)}
  </ul>`
}

export const swatch = (verdict: Verdict): Markup =>
  html`<svg class="swatch" aria-hidden="true" focusable="false">
    <rect class="f-${verdict}" width="100%" height="100%" />
  </svg>`

/** The maximum height of a column as a percentage of the chart. The rest is for the labels of the axis. */
const HEIGHT = 88
const BASE = 99.5

/**
 * Draws one column per day for the records that need attention. `summary` names the highest column; `chart` is `undefined` if all are
 * empty.
 */
export function columnChart(groups: readonly CountedGroup[]): {
  readonly summary: string
  readonly chart: Content
} {
  const totals = groups.map((group) => lengthOf(attentionOf(group)))
  const highest = Math.max(...totals)
  if (highest === 0)
    return { summary: `No record needed attention on any of the ${groups.length} days.`, chart: undefined }
  const worst = formatLongDay(groups[totals.indexOf(highest)]?.name ?? '')
  const summary = `Highest: ${formatCount(highest)} on ${worst}.`
  const [first, last] = [groups[0], groups.at(-1)].map((group) => formatLongDay(group?.name ?? ''))
  const top = niceTop(highest)
  const grid = [0, 0.5, 1].map((share) => {
    const y = `${BASE - share * HEIGHT}%`
    return html`<line class="grid" x1="0" x2="100%" y1="${y}" y2="${y}" />
      <text class="axis" x="0" y="${y}" dy="-4">${formatCount(share * top)}</text>`
  })
  const step = 94 / groups.length
  const columns = groups.map((group, index) => {
    let y = BASE
    return attentionOf(group).map(({ name, count }) => {
      const height = count === 0 ? 0 : Math.max(0.9, (count / top) * HEIGHT)
      y -= height
      return height > 0 && rectangle(name, 6 + step * (index + 0.1), y, step * 0.8, height)
    })
  })
  const label = `Records that need attention by day, ${first} to ${last}. ${summary}`
  const chart = html`${legendOf(groups)}
    <svg class="columns" role="img" aria-label="${label}" focusable="false">${grid} ${columns}</svg>
    <p class="ends" aria-hidden="true"><span>${first}</span><span>${last}</span></p>`
  return { summary, chart }
}

/** Returns the smallest of 2, 4, 6, 8, 10, 20, 40, … that is at least `value`, so that its half is a whole number. */
function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)))
  return [2, 4, 6, 8, 10].map((step) => step * power).find((step) => step >= value) ?? value
}
