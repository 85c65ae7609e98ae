import { type Clock, inTime } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import type { Balance, Journal } from '../journal/index.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { PartnerRegistry } from '../partners/index.ts'
import type { ProxyContext } from '../proxy/index.ts'
import type { StoredStages } from '../rollout/index.ts'
import type { Connections, RateLimits } from '../upstream/index.ts'

/** The longest time that a page of metrics waits for the journal. */
const JOURNAL_MS = 2_000

const priorities = ['write', 'read', 'comparison'] as const
const states = ['confirmed', 'refused', 'unknown', 'parked', 'open'] as const

/** Adds gauges of the requests and the queue. */
export function addGauges(
  metrics: Metrics,
  { inFlight, byteBudget }: Pick<ProxyContext, 'inFlight' | 'byteBudget'>,
  registry: Pick<PartnerRegistry, 'underWay'>,
  rateLimits: RateLimits,
  connections: Readonly<Record<'pass_through' | 'read' | 'relay', Pick<Connections, 'held'>>>,
): void {
  metrics.addGauge({ name: 'in_flight_requests', help: 'Requests in flight.' }, () => inFlight.count())
  metrics.addGauge(
    {
      name: 'partner_requests',
      help: 'Requests in flight by partner and revision of its settings.',
      labels: ['partner', 'revision'],
    },
    () =>
      registry
        .underWay()
        .map(({ partner, revision, requests }) => ({ labels: { partner, revision }, value: requests })),
  )
  metrics.addGauge({ name: 'in_flight_bytes', help: 'Bytes of request bodies in memory.' }, () =>
    byteBudget.held(),
  )
  metrics.addGauge(
    { name: 'connections_in_use', help: 'Connections to V3 and V2 in use.', labels: ['kind'] },
    () => Object.entries(connections).map(([kind, own]) => ({ labels: { kind }, value: own.held() })),
  )
  metrics.addGauge(
    { name: 'queue_length', help: 'Calls that wait in the queue of the rate limit.', labels: ['priority'] },
    () => priorities.map((priority) => ({ labels: { priority }, value: rateLimits.waiting(priority) })),
  )
}

/**
 * Adds the ledger: the number of records received, and of those in each state. Both gauges of a page are read together, so that
 * received = confirmed + refused + unknown + parked + open holds on it.
 */
export function addJournalGauges(
  metrics: Metrics,
  journal: Pick<Journal, 'balances' | 'isAvailable'>,
  clock: Clock,
): void {
  // `journal_available` then shows the cause.
  const late = new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The journal did not answer in time.')
  let asked: Promise<readonly Balance[]> | undefined
  const balances = (): Promise<readonly Balance[]> =>
    (asked ??= inTime(journal.balances(), JOURNAL_MS, clock, late).finally(() => {
      asked = undefined
    }))
  metrics.addGauge(
    {
      name: 'journal_received',
      help: 'Records received since the journal was created.',
      labels: ['partner'],
      shared: true,
    },
    async () => (await balances()).map(({ partner, received }) => ({ labels: { partner }, value: received })),
  )
  metrics.addGauge(
    {
      name: 'journal_records',
      help: 'Records in each state.',
      labels: ['partner', 'state'],
      shared: true,
    },
    async () =>
      (await balances()).flatMap((balance) =>
        states.map((state) => ({ labels: { partner: balance.partner, state }, value: balance[state] })),
      ),
  )
  metrics.addGauge({ name: 'journal_available', help: 'Processes that can write to the journal.' }, () =>
    journal.isAvailable() ? 1 : 0,
  )
}

/** Adds what this instance knows of the stages of partners. */
export function addStageGauges(
  metrics: Pick<Metrics, 'addGauge'>,
  stages: Pick<StoredStages, 'describe' | 'viewAgeMs'>,
): void {
  metrics.addGauge(
    {
      name: 'stage_current',
      help: '1 for the stage of each partner.',
      labels: ['partner', 'stage', 'source'],
      shared: true,
    },
    () =>
      stages
        .describe()
        .map(({ partner, stage, source }) => ({ labels: { partner, stage, source }, value: 1 })),
  )
  metrics.addGauge(
    {
      name: 'stage_percent',
      help: 'Share of units that V3 serves at canary.',
      labels: ['partner'],
      shared: true,
    },
    () => stages.describe().map(({ partner, percent }) => ({ labels: { partner }, value: percent })),
  )
  metrics.addGauge(
    { name: 'stage_writes', help: 'Writes under way on each side.', labels: ['partner', 'side'] },
    () =>
      stages
        .describe()
        .flatMap(({ partner, underWay }) =>
          (['v2', 'v3'] as const).map((side) => ({ labels: { partner, side }, value: underWay[side] })),
        ),
  )
  metrics.addGauge(
    { name: 'stage_held_writes', help: 'Writes that wait for their stage.', labels: ['partner'] },
    () => stages.describe().map(({ partner, held }) => ({ labels: { partner }, value: held })),
  )
  metrics.addGauge(
    { name: 'stage_age_seconds', help: 'Time since the stages were read.', shared: true },
    () => {
      const ageMs = stages.viewAgeMs()
      return ageMs === undefined ? [] : ageMs / 1_000
    },
  )
}
