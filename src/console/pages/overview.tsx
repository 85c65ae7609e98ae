import { sees } from '../../rollout/operators.ts'
import type {
  Figures,
  Instance,
  Overview,
  PartnerBalance,
  Percentiles,
  Range,
  Traffic,
} from '../data/port.ts'
import type { PartnerStage } from '../ports.ts'
import type { Page } from './page.ts'
import {
  Badge,
  Chart,
  type Column,
  counted,
  Facts,
  formatCount,
  formatMs,
  Live,
  PartnerLink,
  Section,
  Table,
  Tabs,
  Time,
  type Tone,
} from './parts.tsx'

const ranges = [
  ['live', 'Live', '10 minutes'],
  ['hour', '1 h', 'hour'],
  ['day', '24 h', 'day'],
  ['week', '7 days', 'week'],
] as const satisfies readonly (readonly [Range, string, string])[]

const toRange = (text: string | null): Range => ranges.find(([range]) => range === text)?.[0] ?? 'hour'

/** Whether all is well, and if not where. */
export const overview: Page = {
  path: '/',
  show: async ({ query, scope, actor }, { data, stages }) => {
    const range = toRange(query.get('range'))
    const [found, all] = await Promise.all([data.overview(range, scope), stages.list()])
    const partners = all.filter(({ partner }) => sees(actor, partner))
    const alarms = alarmsOf(found, partners)
    return {
      title: 'Overview',
      json: { range, alarms, ...found },
      body: (
        <>
          <Live id="state" of={[alarms, found.balances, found.instances]}>
            <Alarms alarms={alarms} />
            <Section title="Balance">
              <p class="soft">Every record that was received is in exactly one of these states.</p>
              <Balances balances={found.balances} />
            </Section>
          </Live>
          <Tabs label="Time" tabs={ranges.map(([id, name]) => [`/?range=${id}`, name, id === range])} />
          <Live id="traffic" of={[found.traffic, found.figures]}>
            <div class="columns">
              <Marks traffic={found.traffic} />
              <Calls figures={found.figures} stepMs={found.traffic.stepMs} />
            </div>
          </Live>
          <Live id="instances" of={found.instances}>
            <Section title="Instances">
              <Instances instances={found.instances} />
            </Section>
          </Live>
        </>
      ),
    }
  },
}

interface Alarm {
  readonly tone: 'bad' | 'note'
  readonly text: string
  readonly href: string | undefined
}

/** What asks for an operator, the worst first. */
function alarmsOf(
  { balances, instances, index }: Overview,
  stages: readonly PartnerStage[],
): readonly Alarm[] {
  const [bad, note] = [[], []] as [Alarm[], Alarm[]]
  const add = (to: Alarm[], text: string, href?: string): void =>
    void to.push({ tone: to === bad ? 'bad' : 'note', text, href })
  for (const { partner, holds, unknown, deadLetters } of balances) {
    if (holds === false)
      add(
        bad,
        `The balance of ${partner} does not hold: the journal is damaged. Run markbridge journal check.`,
      )
    if (unknown > 0) add(note, `${partner}: the outcome of ${counted(unknown, 'record')} is unknown.`)
    if (deadLetters > 0)
      add(
        note,
        `${partner}: ${counted(deadLetters, 'dead letter')}.`,
        `/letters?partner=${encodeURIComponent(partner)}`,
      )
  }
  for (const { partner, stage, pending } of stages) {
    const href = `/partners/${encodeURIComponent(partner)}`
    if (stage === 'damaged') add(bad, `The stage of ${partner} in the journal is damaged.`, href)
    if (pending?.needsApproval === true)
      add(note, `${partner}: a step by ${pending.by} waits for an approval.`, href)
  }
  for (const { instance, host, state } of instances)
    if (state !== 'live')
      add(
        bad,
        `Instance ${instance} on ${host} ${state === 'lost' ? 'was lost' : 'does not renew its lease'}.`,
      )
  if (index.lostSteps > 0) add(note, `${counted(index.lostSteps, 'step')} of timelines could not be kept.`)
  return [...bad, ...note]
}

function Alarms({ alarms }: { readonly alarms: readonly Alarm[] }) {
  if (alarms.length === 0) return <p class="notice good">Nothing asks for you.</p>
  return (
    <ul class="alarms" aria-label="What asks for you">
      {alarms.map(({ tone, text, href }) => (
        <li class={tone}>{href === undefined ? text : <a href={href}>{text}</a>}</li>
      ))}
    </ul>
  )
}

const isWhole = ({ received, confirmed, refused, unknown, parked, open }: PartnerBalance): boolean =>
  received === confirmed + refused + unknown + parked + open

function stateOf(balance: PartnerBalance): readonly [Tone, string] {
  if (balance.holds === false || !isWhole(balance)) return ['bad', 'does not hold']
  return balance.holds === undefined ? ['plain', 'not checked yet'] : ['good', 'holds']
}

function Balances({ balances }: { readonly balances: readonly PartnerBalance[] }) {
  const count = (heading: string, of: (balance: PartnerBalance) => number): Column<PartnerBalance> => [
    heading,
    (balance: PartnerBalance) => formatCount(of(balance)),
    'number',
  ]
  return (
    <Table
      caption="Balance of each partner"
      rows={balances}
      columns={[
        ['Partner', ({ partner }) => <PartnerLink id={partner} />],
        count('Received', ({ received }) => received),
        count('= Confirmed', ({ confirmed }) => confirmed),
        count('+ Refused', ({ refused }) => refused),
        count('+ Unknown', ({ unknown }) => unknown),
        count('+ Parked', ({ parked }) => parked),
        count('+ In flight', ({ open }) => open),
        count('Dead letters', ({ deadLetters }) => deadLetters),
        [
          'Balance',
          (balance) => {
            const [tone, word] = stateOf(balance)
            return <Badge tone={tone}>{word}</Badge>
          },
        ],
        ['Checked (UTC)', ({ checkedMs }) => <Time ms={checkedMs} />],
      ]}
      empty="No record was received yet."
    />
  )
}

const states = [
  ['confirmed', 'Confirmed', undefined],
  ['refused', 'Refused', [8, 4]],
  ['unknown', 'Unknown', [2, 3]],
  ['parked', 'Parked', [12, 4, 2, 4]],
  ['open', 'In flight', [4, 4]],
] as const

function Marks({ traffic: { fromMs, stepMs, points, series } }: { readonly traffic: Traffic }) {
  const shown = states.map(([state, label, dash]) => {
    const own = series.filter((one) => one.state === state)
    const values = Array.from({ length: points }, (_, at) =>
      own.reduce((sum, { counts }) => sum + (counts[at] ?? 0), 0),
    )
    return { label, color: `--${state}`, dash, values }
  })
  return (
    <Section title="Marks by time of receipt">
      <Chart title={`Marks by outcome, ${unitOf(stepMs)}`} fromMs={fromMs} stepMs={stepMs} series={shown} />
    </Section>
  )
}

function unitOf(stepMs: number): string {
  if (stepMs < 60_000) return `each ${stepMs / 1_000} s`
  if (stepMs >= 3_600_000) return 'each hour'
  return stepMs === 60_000 ? 'each minute' : `each ${stepMs / 60_000} minutes`
}

const classes = [
  ['2xx', 'Answered 2xx', '--confirmed', undefined],
  ['4xx', 'Refused 4xx', '--refused', [8, 4]],
  ['429', 'Throttled 429', '--parked', [12, 4, 2, 4]],
  ['other', 'Failed', '--unknown', [2, 3]],
] as const

const classOf = (status: string): string =>
  classes.some(([own]) => own === status) ? status : status === '3xx' ? '2xx' : 'other'

function Calls({ figures, stepMs }: { readonly figures: readonly Figures[]; readonly stepMs: number }) {
  const fromMs = figures[0]?.atMs ?? 0
  const step = Math.max(stepMs, 60_000)
  const points =
    Math.round(((figures.at(-1)?.atMs ?? fromMs) - fromMs) / step) + (figures.length === 0 ? 0 : 1)
  const at = (index: number): Figures | undefined =>
    figures.find(({ atMs }) => Math.round((atMs - fromMs) / step) === index)
  const series = classes.map(([own, label, color, dash]) => ({
    ...{ label, color, dash },
    values: Array.from({ length: points }, (_, index) =>
      (at(index)?.calls ?? [])
        .filter(({ status }) => classOf(status) === own)
        .reduce((sum, { count }) => sum + count, 0),
    ),
  }))
  const refused = figures.reduce((sum, { refusedCalls }) => sum + refusedCalls, 0)
  const last = figures.at(-1)
  return (
    <Section title="Calls to V3">
      <Chart title={`Calls by answer, ${unitOf(step)}`} fromMs={fromMs} stepMs={step} series={series} />
      <Facts
        of={[
          ['Batch to answer', formatTimes(last?.batchMs)],
          ['Call to V3', formatTimes(last?.callMs)],
          ['Wait for the rate limit', formatTimes(last?.queueMs)],
          ['Calls turned away by the rate limit', formatCount(refused)],
        ]}
      />
      <p class="soft">
        {last === undefined
          ? 'No instance has written its figures yet.'
          : 'Upper bounds of the median, 95th and 99th percentile in the latest interval.'}
      </p>
    </Section>
  )
}

const formatTimes = (times: Percentiles | undefined): string =>
  times === undefined ? '–' : [times.p50, times.p95, times.p99].map(formatMs).join(' · ')

const instanceTone = { live: 'good', expired: 'note', lost: 'bad' } as const

function Instances({ instances }: { readonly instances: readonly Instance[] }) {
  return (
    <Table
      caption="Instances and their leases"
      rows={instances}
      columns={[
        ['Instance', ({ instance }) => instance],
        ['Host', ({ host }) => host],
        ['Process', ({ pid }) => pid, 'number'],
        ['State', ({ state }) => <Badge tone={instanceTone[state]}>{state}</Badge>],
        ['Lease until (UTC)', ({ leaseUntilMs }) => <Time ms={leaseUntilMs} />],
        ['Open batches', ({ openBatches }) => formatCount(openBatches), 'number'],
      ]}
      empty="No instance has a lease."
    />
  )
}
