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
import { Badge, Chart, counted, formatCount, formatMs, Live, Table, Time, type Tone } from './parts.tsx'

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
            <section>
              <h2>Balance</h2>
              <p class="soft">Every record that was received is in exactly one of these states.</p>
              <Balances balances={found.balances} />
            </section>
          </Live>
          <nav class="tabs" aria-label="Time">
            {ranges.map(([id, name]) => (
              <a href={`/?range=${id}`} aria-current={id === range ? 'true' : undefined}>
                {name}
              </a>
            ))}
          </nav>
          <Live id="traffic" of={[found.traffic, found.figures]}>
            <div class="columns">
              <Marks traffic={found.traffic} />
              <Calls figures={found.figures} stepMs={found.traffic.stepMs} />
            </div>
          </Live>
          <Live id="instances" of={found.instances}>
            <section>
              <h2>Instances</h2>
              <Instances instances={found.instances} />
            </section>
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
  const bad = (text: string, href?: string): Alarm => ({ tone: 'bad', text, href })
  const note = (text: string, href?: string): Alarm => ({ tone: 'note', text, href })
  return [
    ...balances
      .filter(({ holds }) => holds === false)
      .map(({ partner }) =>
        bad(`The balance of ${partner} does not hold: the journal is damaged. Run markbridge journal check.`),
      ),
    ...stages
      .filter(({ stage }) => stage === 'damaged')
      .map(({ partner }) =>
        bad(`The stage of ${partner} in the journal is damaged.`, `/partners/${encodeURIComponent(partner)}`),
      ),
    ...instances
      .filter(({ state }) => state !== 'live')
      .map(({ instance, host, state }) =>
        bad(`Instance ${instance} on ${host} ${state === 'lost' ? 'was lost' : 'does not renew its lease'}.`),
      ),
    ...balances
      .filter(({ unknown }) => unknown > 0)
      .map(({ partner, unknown }) =>
        note(`${partner}: the outcome of ${counted(unknown, 'record')} is unknown.`),
      ),
    ...balances
      .filter(({ deadLetters }) => deadLetters > 0)
      .map(({ partner, deadLetters }) =>
        note(
          `${partner}: ${counted(deadLetters, 'dead letter')}.`,
          `/letters?partner=${encodeURIComponent(partner)}`,
        ),
      ),
    ...stages.flatMap(({ partner, pending }) =>
      pending?.needsApproval === true
        ? [
            note(
              `${partner}: a step by ${pending.by} waits for an approval.`,
              `/partners/${encodeURIComponent(partner)}`,
            ),
          ]
        : [],
    ),
    ...(index.lostSteps > 0
      ? [note(`${counted(index.lostSteps, 'step')} of timelines could not be kept.`)]
      : []),
  ]
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
  const count = (heading: string, of: (balance: PartnerBalance) => number) => ({
    heading,
    cell: (balance: PartnerBalance) => formatCount(of(balance)),
    isNumber: true,
  })
  return (
    <Table
      caption="Balance of each partner"
      rows={balances}
      columns={[
        {
          heading: 'Partner',
          cell: ({ partner }) => <a href={`/partners/${encodeURIComponent(partner)}`}>{partner}</a>,
        },
        count('Received', ({ received }) => received),
        count('= Confirmed', ({ confirmed }) => confirmed),
        count('+ Refused', ({ refused }) => refused),
        count('+ Unknown', ({ unknown }) => unknown),
        count('+ Parked', ({ parked }) => parked),
        count('+ In flight', ({ open }) => open),
        count('Dead letters', ({ deadLetters }) => deadLetters),
        {
          heading: 'Balance',
          cell: (balance) => {
            const [tone, word] = stateOf(balance)
            return <Badge tone={tone}>{word}</Badge>
          },
        },
        { heading: 'Checked (UTC)', cell: ({ checkedMs }) => <Time ms={checkedMs} /> },
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
    return { label, color: `--${state}`, ...(dash === undefined ? {} : { dash }), values }
  })
  return (
    <section>
      <h2>Marks by time of receipt</h2>
      <Chart title={`Marks by outcome, ${unitOf(stepMs)}`} fromMs={fromMs} stepMs={stepMs} series={shown} />
    </section>
  )
}

const unitOf = (stepMs: number): string =>
  stepMs < 60_000
    ? `each ${stepMs / 1_000} s`
    : stepMs < 3_600_000
      ? stepMs === 60_000
        ? 'each minute'
        : `each ${stepMs / 60_000} minutes`
      : 'each hour'

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
    ...{ label, color },
    ...(dash === undefined ? {} : { dash }),
    values: Array.from({ length: points }, (_, index) =>
      (at(index)?.calls ?? [])
        .filter(({ status }) => classOf(status) === own)
        .reduce((sum, { count }) => sum + count, 0),
    ),
  }))
  const refused = figures.reduce((sum, { refusedCalls }) => sum + refusedCalls, 0)
  const last = figures.at(-1)
  return (
    <section>
      <h2>Calls to V3</h2>
      <Chart title={`Calls by answer, ${unitOf(step)}`} fromMs={fromMs} stepMs={step} series={series} />
      <dl class="facts">
        <Fact name="Batch to answer" of={last?.batchMs} />
        <Fact name="Call to V3" of={last?.callMs} />
        <Fact name="Wait for the rate limit" of={last?.queueMs} />
        <div>
          <dt>Calls turned away by the rate limit</dt>
          <dd>{formatCount(refused)}</dd>
        </div>
      </dl>
      <p class="soft">
        {last === undefined
          ? 'No instance has written its figures yet.'
          : 'Upper bounds of the median, 95th and 99th percentile in the latest interval.'}
      </p>
    </section>
  )
}

function Fact({ name, of }: { readonly name: string; readonly of: Percentiles | undefined }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{of === undefined ? '–' : [of.p50, of.p95, of.p99].map(formatMs).join(' · ')}</dd>
    </div>
  )
}

const instanceTone = { live: 'good', expired: 'note', lost: 'bad' } as const

function Instances({ instances }: { readonly instances: readonly Instance[] }) {
  return (
    <Table
      caption="Instances and their leases"
      rows={instances}
      columns={[
        { heading: 'Instance', cell: ({ instance }) => instance },
        { heading: 'Host', cell: ({ host }) => host },
        { heading: 'Process', cell: ({ pid }) => pid, isNumber: true },
        { heading: 'State', cell: ({ state }) => <Badge tone={instanceTone[state]}>{state}</Badge> },
        { heading: 'Lease until (UTC)', cell: ({ leaseUntilMs }) => <Time ms={leaseUntilMs} /> },
        { heading: 'Open batches', cell: ({ openBatches }) => formatCount(openBatches), isNumber: true },
      ]}
      empty="No instance has a lease."
    />
  )
}
