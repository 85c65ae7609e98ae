import { type Clock, inTime } from '../clock.ts'
import { expiryOf, type Secret } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { type Balance, type Journal, recordStates } from '../journal/index.ts'
import { droppedLogLines } from '../observability/logger.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { PartnerRegistry } from '../partners/registry.ts'
import type { ProxyContext } from '../proxy/context.ts'
import type { StoredStages } from '../rollout/live/stored-stages.ts'
import type { Connections, RateLimits } from '../upstream/index.ts'

type Gauges = Pick<Metrics, 'addGauge'>

/** The longest time that a page of metrics waits for the journal, in milliseconds. */
const JOURNAL_MS = 2_000

const priorities = ['write', 'read', 'comparison'] as const
const sides = ['v2', 'v3'] as const

export function addGauges(
  { addGauge }: Gauges,
  { inFlight, byteBudget }: Pick<ProxyContext, 'inFlight' | 'byteBudget'>,
  registry: Pick<PartnerRegistry, 'underWay'>,
  rateLimits: RateLimits,
  connections: Readonly<Record<'pass_through' | 'read' | 'relay', Pick<Connections, 'held'>>>,
): void {
  addGauge('in_flight_requests', 'Requests in flight.', () => inFlight.count())
  addGauge(
    'partner_requests',
    'Requests in flight by partner and by revision of the settings of the partner.',
    () => registry.underWay().map(({ requests, ...of }) => ({ ...of, value: requests })),
    { labels: ['partner', 'revision'] },
  )
  addGauge('in_flight_bytes', 'Bytes of request bodies and complete replies in memory.', () =>
    byteBudget.held(),
  )
  addGauge(
    'connections_in_use',
    'Connections to V3 and V2 in use.',
    () => Object.entries(connections).map(([kind, own]) => ({ kind, value: own.held() })),
    { labels: ['kind'] },
  )
  addGauge(
    'queue_length',
    'Calls that wait in the queue of the rate limit.',
    () => priorities.map((priority) => ({ priority, value: rateLimits.waiting(priority) })),
    { labels: ['priority'] },
  )
  addGauge(
    'log_lines_dropped',
    'Log lines that were lost since the start because standard error was blocked.',
    droppedLogLines,
  )
}

/** Adds the gauge of the certificate for clients. Without a certificate the gauge has no value. */
export function addCertificateGauge({ addGauge }: Gauges, certificate: () => Secret | undefined): void {
  addGauge(
    'listener_certificate_expiry_timestamp_seconds',
    'Time at which the certificate for clients expires.',
    () => {
      const own = certificate()
      return own === undefined ? [] : expiryOf(own) / 1_000
    },
    { shared: true },
  )
}

/** Adds the gauges of the ledger. The gauges share one query, so that on each page the states add up to the number of received records. */
export function addJournalGauges(
  { addGauge }: Gauges,
  journal: Pick<Journal, 'balances' | 'deadLetters' | 'isAvailable'>,
  clock: Clock,
): void {
  // After this error the page of metrics lacks the gauges of the ledger, but shows all other gauges.
  const late = new AdapterError(
    'ADP_JOURNAL_UNAVAILABLE',
    'The journal did not respond within 2 s. The page of metrics lacks the ledger. Check the database.',
  )
  let asked: Promise<readonly Balance[]> | undefined
  const balances = (): Promise<readonly Balance[]> =>
    (asked ??= inTime(journal.balances(), JOURNAL_MS, clock, late).finally(() => {
      asked = undefined
    }))
  addGauge(
    'journal_received',
    'Records received since the journal was created.',
    async () => (await balances()).map(({ partner, received }) => ({ partner, value: received })),
    { labels: ['partner'], shared: true },
  )
  addGauge(
    'journal_records',
    'Records in the journal by state.',
    async () =>
      (await balances()).flatMap((balance) =>
        recordStates.map((state) => ({ partner: balance.partner, state, value: balance[state] })),
      ),
    { labels: ['partner', 'state'], shared: true },
  )
  addGauge(
    'journal_dead_letters',
    'Dead letters that no operator has dismissed yet.',
    async () => {
      const letters = await inTime(journal.deadLetters(), JOURNAL_MS, clock, late)
      return (await balances()).map(({ partner }) => ({ partner, value: letters.get(partner) ?? 0 }))
    },
    { labels: ['partner'], shared: true },
  )
  addGauge('journal_available', 'Number of processes that can write to the journal.', () =>
    journal.isAvailable() ? 1 : 0,
  )
}

export function addStageGauges(
  { addGauge }: Gauges,
  stages: Pick<StoredStages, 'describe' | 'viewAgeMs'>,
): void {
  addGauge(
    'stage_current',
    '1 for the current stage of each partner.',
    () => stages.describe().map(({ partner, stage, source }) => ({ partner, stage, source, value: 1 })),
    { labels: ['partner', 'stage', 'source'], shared: true },
  )
  addGauge(
    'stage_percent',
    'Percentage of the schools that V3 serves.',
    () => stages.describe().map(({ partner, percent }) => ({ partner, value: percent })),
    { labels: ['partner'], shared: true },
  )
  addGauge(
    'stage_writes',
    'Writes in progress, on V2 and on V3.',
    () =>
      stages
        .describe()
        .flatMap(({ partner, underWay }) => sides.map((side) => ({ partner, side, value: underWay[side] }))),
    { labels: ['partner', 'side'] },
  )
  addGauge(
    'stage_held_writes',
    'Writes that wait until a change or a read of the stages is finished.',
    () => stages.describe().map(({ partner, held }) => ({ partner, value: held })),
    { labels: ['partner'] },
  )
  const ageOf = (ageMs: number | undefined) => (ageMs === undefined ? [] : ageMs / 1_000)
  addGauge(
    'stage_age_seconds',
    'Time since this instance last read the stages.',
    () => ageOf(stages.viewAgeMs()),
    {
      shared: true,
    },
  )
}
