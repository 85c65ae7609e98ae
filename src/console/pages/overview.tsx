import { formatCount, formatCounted } from '../../compare/report/format.ts'
import { AdapterError } from '../../errors.ts'
import { sees } from '../../rollout/operators.ts'
import { type EntryDocument, formatSettingShort } from '../../rollout/partner-document.ts'
import { isServedByV2 } from '../../rollout/stage.ts'
import { checkAlarms, type Checked } from '../alarms.ts'
import type { Overview, PartnerBalance, Range } from '../data/port.ts'
import { Charts, markLines, type TrafficEvent } from './charts.tsx'
import type { Page } from './page.ts'
import { Notice, PartnerLink, Section, Tabs } from './parts.tsx'

/** The ranges of the charts, with their intervals. */
const ranges = {
  live: ['10 min', '10 s'],
  hour: ['1 h', 'minute'],
  day: ['24 h', '10 min'],
  week: ['7 days', 'hour'],
} as const satisfies Record<Range, readonly [range: string, step: string]>
const rangeTabs = Object.entries(ranges).map(([range, [text]]) => [range, text] as const)

const isRange = (text: string): text is Range => Object.hasOwn(ranges, text)

/** The number of entries of the audit trail that are searched for changes of stages. */
const ENTRIES = 200

export const overview: Page = {
  path: '/',
  show: async ({ query, scope, actor }, { data, stages, health }) => {
    const wanted = query.get('range') ?? ''
    const range = isRange(wanted) ? wanted : 'hour'
    const [found, all, history] = await Promise.all([
      ifAvailable(data.overview(range, scope)),
      ifAvailable(stages.list()),
      ifAvailable(stages.history({ limit: ENTRIES })),
    ])
    const partners = all?.filter(({ document }) => sees(actor, document.partner))
    const entries = (history ?? []).filter(({ partner }) => partner !== null && sees(actor, partner))
    const onV2 = (partners ?? []).flatMap(({ document: { partner, stage } }) => (isServedByV2(stage) ? [partner] : [])) // prettier-ignore
    const nowMs = found?.atMs ?? Date.now()
    const checked = checkAlarms({ nowMs, found, partners, entries, health: health?.() })
    const events = found === undefined ? [] : toEvents(found.traffic, entries)
    return {
      title: 'Overview',
      status: statusOf(checked),
      json: { range, ...checked, events, ...found },
      body: (
        <>
          <Section title="State">
            <State checked={checked} balances={found?.balances ?? []} />
            {onV2.length > 0 && (
              <p>V2 serves {onV2.join(', ')}. The balance does not include every mark that V2 accepts.</p>
            )}
          </Section>
          {found && (
            <>
              {found.balances.length > 0 && <Section title="Balance">{found.balances.map(Balance)}</Section>}
              <Section title="Traffic">
                <Tabs label="Time" name="range" tabs={rangeTabs} current={range} />
                <Charts traffic={found.traffic} events={events} step={ranges[range][1]} />
              </Section>
            </>
          )}
        </>
      ),
    }
  },
}

/** Resolves to `undefined` if the journal cannot be read, since the page then shows an alarm in place of the data. */
const ifAvailable = <Result,>(result: Promise<Result>): Promise<Result | undefined> =>
  result.catch((cause: unknown) => {
    if (cause instanceof AdapterError && cause.code === 'ADP_JOURNAL_UNAVAILABLE') return undefined
    throw cause
  })

function statusOf({ alarms, unchecked }: Checked): string {
  if (alarms.length > 0) return formatCounted(alarms.length, 'alarm')
  return unchecked.length > 0 ? 'Not checked' : 'No alarms'
}

interface StateProps {
  readonly checked: Checked
  readonly balances: readonly PartnerBalance[]
}

/** Shows the alarms, the worst first, and whether all records are accounted for. Alarms of the same kind have one remedy. */
function State({ checked: { alarms, unchecked }, balances }: StateProps) {
  const records = balances.reduce((sum, { received }) => sum + received, 0)
  const groups = Map.groupBy(alarms, ({ kind, tone, remedy }) => `${kind} ${tone} ${remedy}`)
  const holds = records > 0 && balances.every((balance) => balance.holds)
  const all = holds
    ? `All ${formatCount(records)} records are accounted for: each is in exactly one state.`
    : undefined
  return (
    <>
      {alarms.length + unchecked.length > 0 ? (
        <p>{all}</p>
      ) : (
        <Notice
          tone="good"
          what={all ?? 'No records have been received yet.'}
          remedy="Every alarm was checked, and none is on."
        />
      )}
      <ul class="alarms">
        {[...groups.values()].map((own) => (
          <li data-alarm={own[0]?.kind}>
            {own.map(({ tone, text, partner, sinceMs, remedy, link }, at) => (
              <Notice
                {...{ tone, link, what: text, since: sinceMs, remedy: at === 0 && remedy }}
                whom={partner === undefined ? 'all partners' : <PartnerLink id={partner} />}
              />
            ))}
          </li>
        ))}
      </ul>
      {unchecked.length > 0 && <Notice tone="note" what={`Not checked: ${unchecked.join('; ')}.`} />}
    </>
  )
}

/** The actions of the audit trail after which a partner is at another stage. */
const moves: ReadonlySet<string> = new Set(['set', 'back', 'guard', 'commit'] satisfies EntryDocument['action'][]) // prettier-ignore

/** Returns the changes of stages and the outages of V3 in the time of the charts, oldest first. */
function toEvents(
  { fromMs, outages }: Overview['traffic'],
  entries: readonly EntryDocument[],
): readonly TrafficEvent[] {
  const changes = entries.flatMap(({ at, partner, action, to, by }): readonly TrafficEvent[] =>
    moves.has(action) && to !== null && Date.parse(at) >= fromMs
      ? [{ fromMs: Date.parse(at), text: `${partner}: ${formatSettingShort(to)}, by ${by}` }]
      : [],
  )
  const failures = outages.map((outage) => ({ ...outage, text: 'V3 failed' }))
  return [...changes, ...failures].toSorted((one, other) => one.fromMs - other.fromMs)
}

/** The width of a bar, and the minimum width of a state with a record, in units of the drawing. */
const [WIDTH, LEAST] = [1_000, 6]

/** Shows the balance of a partner as a bar, and its states in words with links to their batches. */
function Balance(balance: PartnerBalance) {
  const { partner, received, deadLetters } = balance
  const shown = markLines.map(([label, color, state]) => ({ label, color, state, count: balance[state] })).filter(({ count }) => count > 0)
  const widths = shown.map(({ count }) => Math.max(LEAST, (count / received) * WIDTH))
  const query = `partner=${encodeURIComponent(partner)}`
  return (
    <article class="balance">
      <h3>
        <PartnerLink id={partner} /> {formatCounted(received, 'record')} received
      </h3>
      <svg viewBox={`0 0 ${widths.reduce((sum, width) => sum + width, 0)} 10`} preserveAspectRatio="none" aria-hidden="true">
        {shown.map(({ color }, at) => (
          <rect class={color} x={widths.slice(0, at).reduce((sum, width) => sum + width, 0)} width={widths[at]} height="10" />
        ))}
      </svg>
      <ul class="legend">
        {shown.map(({ label, color, state, count }) => (
          <li>
            <i class={`key ${color}`} /> <a href={`/batches?state=${state}&${query}`}>{`${formatCount(count)} ${label.toLowerCase()}`}</a>
          </li>
        ))}
        {deadLetters > 0 && (
          <li>
            <a href={`/letters?${query}`}>{formatCounted(deadLetters, 'dead letter')}</a>
          </li>
        )}
      </ul>
    </article>
  )
} // prettier-ignore
