import { formatCounted } from '../../compare/report/format.ts'
import { recordStates } from '../../journal/index.ts'
import { sees } from '../../rollout/operators.ts'
import { type Alarm, alarmsOf } from '../alarms.ts'
import type { Figures, Instance, PartnerBalance, Range, Traffic } from '../data/port.ts'
import type { Page } from './page.ts'
import {
  Badge,
  type Column,
  Facts,
  Notice,
  PartnerLink,
  Section,
  table,
  Tabs,
  Time,
  type Tone,
} from './parts.tsx'

const ranges = { live: 'Live', hour: '1 h', day: '24 h', week: '7 days' } as const satisfies Record<
  Range,
  string
>

const isRange = (text: string): text is Range => Object.hasOwn(ranges, text)

export const overview: Page = {
  path: '/',
  isLive: true,
  show: async ({ query, scope, actor }, { data, stages }) => {
    const wanted = query.get('range') ?? ''
    const range = isRange(wanted) ? wanted : 'hour'
    const [found, all] = await Promise.all([data.overview(range, scope), stages.list()])
    const partners = all.filter(({ document }) => sees(actor, document.partner))
    const alarms = alarmsOf(found, partners)
    return {
      title: 'Overview',
      status: alarms.length === 0 ? 'No alarms' : formatCounted(alarms.length, 'alarm'),
      json: { range, alarms, ...found },
      body: (
        <>
          <Section title="Alarms">
            <Alarms alarms={alarms} />
          </Section>
          <Section title="Balance">
            <p class="soft">Every received record is in exactly one of these states.</p>
            {balanceTable(found.balances)}
          </Section>
          <Tabs label="Time" name="range" tabs={Object.entries(ranges)} current={range} />
          <div class="columns">
            <Marks traffic={found.traffic} />
            <Calls figures={found.figures} stepMs={found.traffic.stepMs} />
          </div>
          <Section title="Instances">{instanceTable(found.instances)}</Section>
        </>
      ),
    }
  },
}

function Alarms({ alarms }: { readonly alarms: readonly Alarm[] }) {
  if (alarms.length === 0) return <Notice tone="good" what="There are no alarms." />
  return (
    <ul class="alarms">
      {alarms.map(({ tone, text, sinceMs, remedy, href }) => (
        <li>
          <Notice
            tone={tone}
            what={text}
            since={sinceMs}
            remedy={remedy}
            link={href === undefined ? href : [href, 'Show']}
          />
        </li>
      ))}
    </ul>
  )
}

const isWhole = (balance: PartnerBalance): boolean =>
  balance.received === recordStates.reduce((sum, state) => sum + balance[state], 0)

function Holds({ balance }: { readonly balance: PartnerBalance }) {
  const [tone, word]: readonly [Tone, string] =
    balance.holds === false || !isWhole(balance)
      ? ['bad', 'does not hold']
      : balance.holds === undefined
        ? ['plain', 'not checked yet']
        : ['good', 'holds']
  return <Badge tone={tone}>{word}</Badge>
}

const balanceTable = table<PartnerBalance>('Balance of each partner', 'No record was received yet.', [
  ['Partner', ({ partner }) => <PartnerLink id={partner} />],
  ['Received', ({ received }) => received],
  ['= Confirmed', ({ confirmed }) => confirmed],
  ['+ Refused', ({ refused }) => refused],
  ['+ Not applied', ({ notApplied }) => notApplied],
  ['+ Unknown', ({ unknown }) => unknown],
  ['+ Parked', ({ parked }) => parked],
  ['+ In flight', ({ open }) => open],
  ['Dead letters', ({ deadLetters }) => deadLetters],
  ['Balance', (balance) => <Holds balance={balance} />],
  ['Checked', ({ checkedMs }) => <Time at={checkedMs} />],
])

const states = [
  ['confirmed', 'Confirmed', '--confirmed'],
  ['refused', 'Refused', '--refused'],
  ['notApplied', 'Not applied', '--not-applied'],
  ['unknown', 'Unknown', '--unknown'],
  ['parked', 'Parked', '--parked'],
  ['open', 'In flight', '--open'],
] as const

function Marks({ traffic: { series, ...time } }: { readonly traffic: Traffic }) {
  const valueOf = (state: string, at: number): number =>
    series.reduce((sum, one) => sum + (one.state === state ? (one.counts[at] ?? 0) : 0), 0)
  return (
    <Section title="Marks by time of receipt">
      <Chart title={`Marks by outcome, ${unitOf(time.stepMs)}`} {...time} lines={states} valueOf={valueOf} />
    </Section>
  )
}

function unitOf(stepMs: number): string {
  if (stepMs < 60_000) return `each ${stepMs / 1_000} s`
  if (stepMs >= 3_600_000) return 'each hour'
  return stepMs === 60_000 ? 'each minute' : `each ${stepMs / 60_000} minutes`
}

/** The lines of the chart of calls, each with the classes of status that the line counts. */
const answers = [
  [['2xx', '3xx'], 'Answered 2xx', '--confirmed'],
  [['4xx'], 'Refused 4xx', '--refused'],
  [['429'], 'Throttled 429', '--parked'],
  [['1xx', '5xx', 'none'], 'Failed', '--unknown'],
] as const

function Calls({ figures, stepMs }: { readonly figures: readonly Figures[]; readonly stepMs: number }) {
  const fromMs = figures[0]?.atMs ?? 0
  const step = Math.max(stepMs, 60_000)
  const byPoint = new Map(figures.map((one) => [Math.round((one.atMs - fromMs) / step), one]))
  const valueOf = (classes: readonly string[], at: number): number => {
    const calls = byPoint.get(at)?.calls.filter(({ status }) => classes.includes(status)) ?? []
    return calls.reduce((sum, { count }) => sum + count, 0)
  }
  const last = figures.at(-1)
  const time = { fromMs, stepMs: step, points: Math.max(-1, ...byPoint.keys()) + 1 }
  return (
    <Section title="Calls to V3">
      <Chart title={`Calls by response, ${unitOf(step)}`} {...time} lines={answers} valueOf={valueOf} />
      <Facts
        of={[
          ['Batch to reply', formatTimes(last?.batchMs)],
          ['Call to V3', formatTimes(last?.callMs)],
          ['Wait for the rate limit', formatTimes(last?.queueMs)],
          ['Calls refused by the rate limit', figures.reduce((sum, one) => sum + one.refusedCalls, 0)],
        ]}
      />
      <p class="soft">
        {last === undefined
          ? 'No instance has stored figures yet.'
          : 'Upper bounds of the median, 95th and 99th percentile in the latest interval.'}
      </p>
    </Section>
  )
}

const formatTimes = (times: Figures['callMs'] | undefined): string =>
  times === undefined ? '' : [times.p50, times.p95, times.p99].map(formatMs).join(' · ')

const formatMs = (ms: number | undefined): string =>
  ms === undefined ? '–' : ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`

const instanceTones = { live: 'good', expired: 'note', lost: 'bad' } as const

const instanceTable = table<Instance>('Instances and their leases', 'No instance has a lease.', [
  ['Instance', ({ instance }) => String(instance)],
  ['Host', ({ host }) => host],
  ['Process', ({ pid }) => String(pid)],
  ['State', ({ state }) => <Badge tone={instanceTones[state]}>{state}</Badge>],
  ['Lease until', ({ leaseUntilMs }) => <Time at={leaseUntilMs} />],
  ['Open batches', ({ openBatches }) => openBatches],
])

/** A line of a chart. `color` is a custom property of the style sheet. */
type Line<Name> = readonly [name: Name, label: string, color: string]

interface ChartProps<Name> {
  readonly title: string
  readonly fromMs: number
  readonly stepMs: number
  readonly points: number
  readonly lines: readonly Line<Name>[]
  readonly valueOf: (name: Name, at: number) => number
}

interface Point {
  readonly ms: number
  readonly values: readonly number[]
}

const MAX_ROWS = 100
/** Lines also differ in their dashes, for people who cannot tell the colours apart. */
const dashes = [undefined, [8, 4], [6, 2, 2, 2], [2, 3], [12, 4, 2, 4], [4, 4]]

/** Shows figures over time, as a chart if the browser runs scripts and always as a table. */
function Chart<Name>({ title, fromMs, stepMs, points, lines, valueOf }: ChartProps<Name>) {
  const rows = Array.from({ length: points }, (_, at): Point => {
    return { ms: fromMs + at * stepMs, values: lines.map(([name]) => valueOf(name, at)) }
  })
  const series = lines.map(([, label, color], at) => ({
    ...{ label, color, dash: dashes[at] },
    values: rows.map(({ values }) => values[at]),
  }))
  const columns = lines.map(([, label], at): Column<Point> => [label, ({ values }) => values[at] ?? 0])
  const figures = table(title, 'There are no figures in this time range.', [
    ['from', ({ ms }: Point) => <Time at={ms} />],
    ...columns,
  ])
  const shown = rows.filter(({ values }) => values.some((value) => value !== 0))
  return (
    <figure class="chart" data-chart={JSON.stringify({ x: rows.map(({ ms }) => ms / 1_000), series })}>
      <figcaption>{title}</figcaption>
      <div class="plot" aria-hidden="true" />
      <details>
        <summary>Figures of {title.toLowerCase()}</summary>
        {figures(shown.slice(-MAX_ROWS).reverse())}
      </details>
    </figure>
  )
}
