import type { CountedGroup } from '../../run-document.ts'
import { addVerdicts } from '../../tally.ts'
import { verdicts, verdictTexts } from '../../verdict.ts'
import { formatBound, formatCount, formatLongDay, formatShare } from '../format.ts'
import type { PublishedRun } from '../published-run.ts'
import { attention, bar, legend, swatch } from './bars.ts'
import { type Content, html, type Markup } from './markup.ts'
import { barTable, codePath, verdictTable } from './tables.ts'

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0)
/** Records of a group that ask for attention. */
const attentionOf = (group: CountedGroup): number =>
  sumOf(attention.map((verdict) => group.verdicts[verdict]))
/** A legend of the verdicts that occur. */
const legendOf = (groups: readonly CountedGroup[]): Markup =>
  legend(attention.filter((verdict) => groups.some((group) => group.verdicts[verdict] > 0)))

const chart = (title: string, text: Content, body: Content): Markup =>
  html`<figure class="chart">
    <figcaption>
      <h3>${title}</h3>
      <p>${text}</p>
    </figcaption>
    ${body}
  </figure>`

/** One bar of all verdicts, and their counts below it. */
export function chartVerdicts({ verdicts: counts, compared }: PublishedRun): Markup {
  const seen = verdicts.filter((verdict) => counts[verdict] > 0)
  const words = seen.map((verdict) => `${verdictTexts[verdict].label} ${formatCount(counts[verdict])}`)
  const parts = seen.map((verdict) => ({ name: verdict, count: counts[verdict] }))
  return html`<figure class="verdicts">
    ${seen.length > 0 && bar(parts, sumOf(parts.map(({ count }) => count)), `Verdicts: ${words.join(', ')}`)}
    <dl class="tiles">
      ${verdicts.map((verdict) => {
        const count = counts[verdict]
        const { label, meaning } = verdictTexts[verdict]
        return html`<div class="tile${count === 0 && ' zero'}">
          <dt>${swatch(verdict)}${label}</dt>
          <dd>
            <b>${formatCount(count)}</b>
            <span class="share">${count > 0 && formatShare(count, compared)}</span>
          </dd>
          <dd class="note">${meaning}</dd>
        </div>`
      })}
    </dl>
  </figure>`
}

const MOST_FIELDS = 12

/** The fields with the most differences. */
export function chartFields({ differences }: PublishedRun): Markup | undefined {
  const fields = [...Map.groupBy(differences, ({ path }) => path)]
    .map(([path, classes]) => ({
      path,
      classes: classes.length,
      count: sumOf(classes.map(({ count }) => count)),
    }))
    .sort((one, other) => other.count - one.count)
  if (fields.length === 0) return undefined
  return chart(
    'By field',
    html`Records that differ in a field. A record that differs in two counts in both.
    ${fields.length > MOST_FIELDS && `The ${MOST_FIELDS} largest of ${fields.length} fields.`}`,
    barTable(
      ['Field', 'Records', 'Classes'],
      fields.slice(0, MOST_FIELDS).map(({ path, classes, count }) => ({
        name: codePath(path),
        parts: [{ name: 'differs', count }],
        cells: [formatCount(count), String(classes)],
      })),
    ),
  )
}

/** Records that ask for attention by group, such as the class of the attendance code. */
export function chartGroups(
  title: string,
  heading: string,
  groups: readonly CountedGroup[],
  nameOf: (name: string) => string,
): Markup | undefined {
  if (groups.length === 0) return undefined
  const rows = groups.map((group) => ({
    name: nameOf(group.name),
    parts: attention.map((verdict) => ({ name: verdict, count: group.verdicts[verdict] })),
    cells: [
      formatCount(attentionOf(group)),
      formatShare(attentionOf(group), sumOf(Object.values(group.verdicts))) ?? '–',
    ] as const,
  }))
  return chart(
    title,
    'Records that ask for attention, and their share.',
    html`${legendOf(groups)} ${barTable([heading, 'Records', 'Share'], rows)}
      <details>
        <summary>Table: verdicts ${title.toLowerCase()}</summary>
        ${verdictTable(heading, groups, nameOf)}
      </details>`,
  )
}

/** How long marks took to be visible on the other side. */
export function chartDelays({ delays }: PublishedRun): Markup | undefined {
  const total = sumOf(delays.map(({ count }) => count))
  if (total === 0) return undefined
  let soFar = 0
  const rows = delays.map(({ upToMs, count }) => {
    soFar += count
    return {
      name: upToMs === null ? 'longer' : formatBound(upToMs),
      parts: [{ name: 'delay', count }],
      cells: [formatCount(count), formatShare(soFar, total) ?? '–'] as const,
    }
  })
  return chart(
    'Delay',
    'Time until a mark that one side had accepted was visible on the other.',
    barTable(['Up to', 'Marks', 'Visible by then'], rows),
  )
}

const MOST_COLUMNS = 75

/** The records that ask for attention over time; by week or month where there are too many days. */
export function chartDays({ kind, days }: PublishedRun): Markup | undefined {
  if (days.length === 0) return undefined
  const { unit, groups } = grouped(days)
  const totals = groups.map(attentionOf)
  const highest = Math.max(...totals)
  const worst = groups[totals.indexOf(highest)]?.name ?? ''
  const [first = '', last = ''] = [groups[0]?.name, groups.at(-1)?.name]
  const summary =
    highest === 0
      ? `None in ${groups.length} ${unit}s.`
      : `Highest: ${formatCount(highest)} ${unit === 'day' ? 'on' : `in the ${unit} of`} ${formatLongDay(worst)}.`
  const heading = unit === 'day' ? 'Day' : `${unit === 'week' ? 'Week' : 'Month'} of`
  const columns = html`${legendOf(groups)}
    <svg
      class="columns"
      role="img"
      aria-label="Records that ask for attention by ${unit}, ${formatLongDay(first)} to ${formatLongDay(last)}. ${summary}"
      focusable="false"
    >
      ${gridOf(niceTop(highest))}
      ${groups.map((group, index) => column(group, index, groups.length, niceTop(highest)))}
    </svg>
    <p class="ends" aria-hidden="true">
      <span>${formatLongDay(first)}</span><span>${formatLongDay(last)}</span>
    </p>`
  return chart(
    'Over time',
    html`Records that ask for attention, by ${unit} of the ${kind === 'live' ? 'comparison' : 'session'}.
    ${summary}`,
    html`${highest > 0 && columns}
      <details>
        <summary>Table: verdicts by ${unit}</summary>
        ${verdictTable(heading, groups, formatLongDay)}
      </details>`,
  )
}

/** Percent of the height that columns take: the rest has the figures of the axis. */
const HEIGHT = 88
const BASE = 99.5

function gridOf(top: number): Content {
  return [0, 0.5, 1].map((share) => {
    const y = BASE - share * HEIGHT
    return html`<line class="grid" x1="0" x2="100%" y1="${y}%" y2="${y}%" /><text
        class="axis"
        x="0"
        y="${y}%"
        dy="-4"
      >
        ${formatCount(share * top)}
      </text>`
  })
}

function column({ verdicts: counts }: CountedGroup, index: number, count: number, top: number): Content {
  const step = 94 / count
  const width = Math.min(step * 0.78, 6)
  const x = 6 + step * index + (step - width) / 2
  let y = BASE
  return attention
    .filter((verdict) => counts[verdict] > 0)
    .map((verdict) => {
      const height = Math.max(0.9, (counts[verdict] / top) * HEIGHT)
      y -= height
      return html`<rect
        class="f-${verdict} edge"
        x="${x.toFixed(2)}%"
        y="${y.toFixed(2)}%"
        width="${width.toFixed(2)}%"
        height="${height.toFixed(2)}%"
      />`
    })
}

/** The next of 2, 4, 6, 8, 10, 20, 40, …, so that its half is whole. */
function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)))
  return [2, 4, 6, 8, 10].map((step) => step * power).find((step) => step >= value) ?? value
}

/** Days as they are, or added up by week (from its Monday) or month (from its first day). */
function grouped(days: readonly CountedGroup[]): {
  readonly unit: 'day' | 'week' | 'month'
  readonly groups: readonly CountedGroup[]
} {
  if (days.length <= MOST_COLUMNS) return { unit: 'day', groups: days }
  const weeks = merge(days, mondayOf)
  if (weeks.length <= MOST_COLUMNS) return { unit: 'week', groups: weeks }
  return { unit: 'month', groups: merge(days, (day) => `${day.slice(0, 7)}-01`).slice(-MOST_COLUMNS) }
}

function mondayOf(day: string): string {
  const time = Date.parse(`${day}T00:00:00Z`)
  // Not every name is that of a day.
  if (Number.isNaN(time)) return day
  return new Date(time - ((new Date(time).getUTCDay() + 6) % 7) * 86_400_000).toISOString().slice(0, 10)
}

function merge(days: readonly CountedGroup[], nameOf: (day: string) => string): readonly CountedGroup[] {
  return [...Map.groupBy(days, ({ name }) => nameOf(name))].map(([name, group]) => ({
    name,
    verdicts: addVerdicts(group.map((day) => day.verdicts)),
  }))
}
