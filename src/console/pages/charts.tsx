import type { RecordState } from '../../journal/index.ts'
import type { Series, Traffic } from '../data/port.ts'
import { formatCount } from '../../compare/report/format.ts'
import { type Column, table, Time } from './parts.tsx'

/** A line of a chart, with the names of the series that the line adds up. `color` is a class and a custom property of the style sheet. */
type Line<Name extends string> = readonly [label: string, color: string, ...names: readonly Name[]]

export const markLines = [
  ['Confirmed', 'confirmed', 'confirmed'],
  ['Refused', 'refused', 'refused'],
  ['Not applied', 'not-applied', 'notApplied'],
  ['Unknown', 'unknown', 'unknown'],
  ['Parked', 'parked', 'parked'],
  ['In flight', 'open', 'open'],
] as const satisfies readonly Line<RecordState>[]

const callLines: readonly Line<string>[] = [
  ['Answered 2xx', 'confirmed', '2xx', '3xx'],
  ['Refused 4xx', 'refused', '4xx'],
  ['Throttled 429', 'parked', '429'],
  ['Failed', 'not-applied', '1xx', '5xx', 'none'],
]

/** An event to mark in the charts: a moment, or a period if `untilMs` is given. */
export interface TrafficEvent {
  readonly fromMs: number
  readonly untilMs?: number
  readonly text: string
}

interface ChartsProps {
  readonly traffic: Traffic
  readonly events: readonly TrafficEvent[]
  /** The length of an interval in words, such as `10 s` or `minute`. */
  readonly step: string
}

/**
 * Shows marks and calls over the same time range. The script draws both charts with one cursor. Without scripts, tables show the figures.
 */
export function Charts({ traffic, events, step }: ChartsProps) {
  return (
    <>
      <div class="columns" data-events={JSON.stringify(events)}>
        <Chart
          title={`Marks by outcome, each ${step}`}
          {...{ traffic, lines: markLines, series: traffic.marks }}
        />
        <Chart
          title={`Calls to V3, each ${step}`}
          {...{ traffic, lines: callLines, series: traffic.calls }}
        />
      </div>
      {eventTable(events.map((event, at) => ({ ...event, text: `${at + 1}. ${event.text}` })))}
    </>
  )
}

const eventTable = table<TrafficEvent>('Stage changes and outages', 'No stage changed, and V3 did not fail in this time.', [
  ['Event', ({ text }) => text],
  ['From', ({ fromMs }) => <Time at={fromMs} />],
  ['Until', ({ untilMs }) => untilMs && <Time at={untilMs} />],
]) // prettier-ignore

const MAX_ROWS = 100
/** Lines also differ in their dashes, for people who cannot tell the colours apart. */
const dashes = [undefined, [8, 4], [6, 2, 2, 2], [2, 3], [12, 4, 2, 4], [4, 4]]

interface ChartProps {
  readonly title: string
  readonly traffic: Traffic
  readonly lines: readonly Line<string>[]
  readonly series: readonly Series<string>[]
}

function Chart({ title, traffic: { fromMs, stepMs, points }, lines, series }: ChartProps) {
  const drawn = lines.map(([label, color, ...names], at) => {
    const own = series.filter(({ name }) => names.includes(name))
    const values = Array.from({ length: points }, (_, point) =>
      own.reduce((sum, { counts }) => sum + (counts[point] ?? 0), 0),
    )
    return { label, color, dash: dashes[at], values, sum: values.reduce((sum, value) => sum + value, 0) }
  })
  const figures = table<number>(title, 'There are no figures in this time range.', [
    ['From', (point) => <Time at={fromMs + point * stepMs} />],
    ...drawn.map(({ label, values }): Column<number> => [label, (point) => values[point]]),
  ])
  const shown = Array.from({ length: points }, (_, point) => point).filter((point) =>
    drawn.some(({ values }) => values[point] !== 0),
  )
  return (
    <figure class="chart" data-chart={JSON.stringify({ fromMs, stepMs, points, series: drawn })}>
      <figcaption>{title}</figcaption>
      <div class="plot" aria-hidden="true" />
      <ul class="legend">
        <li class="at">In total</li>
        {drawn.map(({ label, color, sum }) => (
          <li>
            <i class={`key ${color}`} /> {label} <b>{formatCount(sum)}</b>
          </li>
        ))}
      </ul>
      <details>
        <summary>Figures: {title}</summary>
        {figures(shown.slice(-MAX_ROWS).reverse())}
      </details>
    </figure>
  )
}
