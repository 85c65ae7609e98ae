import { formatCell, formatDay } from '../format.ts'
import { addCounts, leastOf, type PublishedGroup, type PublishedRun } from '../published-run.ts'
import { html, type Markup } from './markup.ts'
import { type Content } from './markup.ts'
import { attention, legend } from './verdict-style.ts'
import { verdictTable } from './verdict-table.ts'
import { verdicts as allVerdicts, type Verdict } from '../../verdict.ts'
import type { PublishedCount } from '../published-run.ts'

const MOST_COLUMNS = 75

/** The records that ask for attention over time; by week or month where there are too many days. */
export function chartDays({ kind, days }: PublishedRun): Markup | undefined {
  if (days.length === 0) return undefined
  const { unit, groups } = grouped(days)
  const totals = groups.map(({ verdicts }) =>
    attention.reduce((sum, { verdict }) => sum + leastOf(verdicts[verdict]), 0),
  )
  const highest = Math.max(...totals)
  const worst = groups[totals.indexOf(highest)]
  const first = groups[0]?.name ?? ''
  const last = groups.at(-1)?.name ?? ''
  const summary =
    highest === 0
      ? `None in ${groups.length} ${unit}s.`
      : `Highest: ${formatCell(addCounts(attention.map(({ verdict }) => worst?.verdicts[verdict] ?? 0)))} ${unit === 'day' ? 'on' : `in the ${unit} of`} ${formatDay(worst?.name ?? '')}.`
  const top = niceTop(highest)
  return html`<figure class="chart">
    <figcaption>
      <h3>Over time</h3>
      <p>
        Records that ask for attention, by ${unit} of the ${kind === 'live' ? 'comparison' : 'session'}.
        ${summary}
      </p>
    </figcaption>
    ${highest > 0 && legend(attention.filter(({ verdict }) => groups.some((group) => group.verdicts[verdict] !== 0)))}
    ${
      highest > 0 &&
      html`<svg
          class="columns"
          role="img"
          aria-label="Records that ask for attention by ${unit}, ${formatDay(first)} to ${formatDay(last)}. ${summary}"
          focusable="false"
        >
          ${[0, 0.5, 1].map((share) => html`<line class="grid" x1="0" x2="100%" y1="${y(share)}%" y2="${y(share)}%" /><text class="axis" x="0" y="${y(share)}%" dy="-4">${share * top >= 1 || share === 0 ? formatCell(Math.round(share * top)) : ''}</text>`)}
          ${groups.map((group, index) => column(group, index, groups.length, top))}
        </svg>
        <p class="ends" aria-hidden="true">
          <span>${formatDay(first)}</span><span>${formatDay(last)}</span>
        </p>`
    }
    <details>
      <summary>Table: verdicts by ${unit}</summary>
      ${verdictTable(unit === 'day' ? 'Day' : `${unit[0]?.toUpperCase()}${unit.slice(1)} of`, groups, formatDay)}
    </details>
  </figure>`
}

/** Share of the height, from the top, that leaves room for the figures of the axis. */
const y = (share: number): number => 99.5 - share * 88

function column({ verdicts }: PublishedGroup, index: number, count: number, top: number): Content {
  const step = 94 / count
  const width = Math.min(step * 0.78, 6)
  const x = 6 + step * index + (step - width) / 2
  let base = 0
  return attention.map(({ verdict }) => {
    const value = leastOf(verdicts[verdict])
    if (value === 0) return undefined
    const height = Math.max(0.9, (value / top) * 88)
    base += height
    return html`<rect
      class="f-${verdict} edge"
      x="${x.toFixed(2)}%"
      y="${(99.5 - base).toFixed(2)}%"
      width="${width.toFixed(2)}%"
      height="${height.toFixed(2)}%"
    />`
  })
}

/** The next of 1, 2, 5, 10, 20, 50, …, even so that its half is whole. */
function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)))
  return Math.max(
    2,
    [1, 2, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value) ?? value,
  )
}

type Unit = 'day' | 'week' | 'month'

/** Days as they are, or added up by week (from its Monday) or month (from its first day). */
function grouped(days: readonly PublishedGroup[]): {
  readonly unit: Unit
  readonly groups: readonly PublishedGroup[]
} {
  const isDated = days.every(({ name }) => /^\d{4}-\d\d-\d\d$/.test(name) && !Number.isNaN(Date.parse(name)))
  if (!isDated || days.length <= MOST_COLUMNS) return { unit: 'day', groups: days.slice(0, MOST_COLUMNS) }
  const weeks = merge(days, mondayOf)
  if (weeks.length <= MOST_COLUMNS) return { unit: 'week', groups: weeks }
  return { unit: 'month', groups: merge(days, (day) => `${day.slice(0, 7)}-01`).slice(-MOST_COLUMNS) }
}

function mondayOf(day: string): string {
  const time = Date.parse(`${day}T00:00:00Z`)
  return new Date(time - ((new Date(time).getUTCDay() + 6) % 7) * 86_400_000).toISOString().slice(0, 10)
}

function merge(days: readonly PublishedGroup[], nameOf: (day: string) => string): readonly PublishedGroup[] {
  const members = Map.groupBy(days, ({ name }) => nameOf(name))
  return [...members].map(([name, group]) => ({
    name,
    verdicts: Object.fromEntries(
      allVerdicts.map((verdict) => [verdict, addCounts(group.map(({ verdicts }) => verdicts[verdict]))]),
    ) as Record<Verdict, PublishedCount>,
  }))
}
