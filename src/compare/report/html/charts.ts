import type { CountedGroup } from '../../run-document.ts'
import { addVerdicts } from '../../tally.ts'
import { type Verdict, verdicts, verdictTexts } from '../../verdict.ts'
import { formatCount, formatLongDay } from '../format.ts'
import { type Content, html, type Markup } from './markup.ts'

/** The verdicts that need attention, in the order in which charts stack them. */
const attention: readonly Verdict[] = verdicts.slice(2)

export const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0)

export const attentionOf = ({ verdicts: counts }: CountedGroup): readonly BarPart[] =>
  attention.map((verdict) => ({ name: verdict, count: counts[verdict] }))

interface BarPart {
  readonly name: string
  readonly count: number
}

export const lengthOf = (parts: readonly BarPart[]): number => sumOf(parts.map(({ count }) => count))

/** Draws a horizontal bar whose full width stands for `most`. No part with a record vanishes. A bar without figures needs a `label`. */
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

/** Draws a part of a chart. Position and size are percentages. */
function rectangle(name: string, x: number, y: number, width: number, height: number): Markup {
  const [left, top, across, down] = [x, y, width, height].map((value) => `${value.toFixed(2)}%`)
  return html`<rect class="f-${name}" x="${left}" y="${top}" width="${across}" height="${down}" />`
}

export function legendOf(groups: readonly CountedGroup[]): Markup {
  const shown = attention.filter((verdict) => groups.some((group) => group.verdicts[verdict] > 0))
  return html`<ul class="legend">
    ${shown.map((verdict) => html`<li>${swatch(verdict)}${verdictTexts[verdict].label}</li>`)}
  </ul>`
}

/** Draws the colour of a verdict, to be placed before its name. */
export const swatch = (verdict: Verdict): Markup =>
  html`<svg class="swatch" aria-hidden="true" focusable="false">
    <rect class="f-${verdict}" width="100%" height="100%" />
  </svg>`

const MOST_COLUMNS = 75

/** Returns days unchanged, or adds them up by week (from Monday) or month (from its first day) if a chart cannot show so many. */
export function toColumns(days: readonly CountedGroup[]): {
  readonly unit: 'day' | 'week' | 'month'
  readonly groups: readonly CountedGroup[]
} {
  if (days.length <= MOST_COLUMNS) return { unit: 'day', groups: days }
  const weeks = merge(days, mondayOf)
  if (weeks.length <= MOST_COLUMNS) return { unit: 'week', groups: weeks }
  return { unit: 'month', groups: merge(days, (day) => `${day.slice(0, 7)}-01`).slice(-MOST_COLUMNS) }
}

function merge(days: readonly CountedGroup[], nameOf: (day: string) => string): readonly CountedGroup[] {
  return [...Map.groupBy(days, ({ name }) => nameOf(name))].map(([name, group]) => ({
    name,
    verdicts: addVerdicts(group.map((day) => day.verdicts)),
  }))
}

function mondayOf(day: string): string {
  const time = Date.parse(`${day}T00:00:00Z`)
  // A name may also be something other than a day.
  if (Number.isNaN(time)) return day
  return new Date(time - ((new Date(time).getUTCDay() + 6) % 7) * 86_400_000).toISOString().slice(0, 10)
}

/** The height of the columns as a percentage of the chart. The rest is for the labels of the axis. */
const HEIGHT = 88
const BASE = 99.5

/** Draws the records that need attention as columns over time, and describes the highest column in words. */
export function columnChart({ unit, groups }: ReturnType<typeof toColumns>): {
  readonly summary: string
  readonly chart: Content
} {
  const totals = groups.map((group) => lengthOf(attentionOf(group)))
  const highest = Math.max(...totals)
  if (highest === 0) return { summary: `None in ${groups.length} ${unit}s.`, chart: undefined }
  const worst = formatLongDay(groups[totals.indexOf(highest)]?.name ?? '')
  const summary = `Highest: ${formatCount(highest)} ${unit === 'day' ? 'on' : `in the ${unit} of`} ${worst}.`
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
  const label = `Records that need attention by ${unit}, ${first} to ${last}. ${summary}`
  const chart = html`${legendOf(groups)}
    <svg class="columns" role="img" aria-label="${label}" focusable="false">${grid} ${columns}</svg>
    <p class="ends" aria-hidden="true"><span>${first}</span><span>${last}</span></p>`
  return { summary, chart }
}

/** Returns the next of 2, 4, 6, 8, 10, 20, 40, …, so that its half is a whole number. */
function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)))
  return [2, 4, 6, 8, 10].map((step) => step * power).find((step) => step >= value) ?? value
}
