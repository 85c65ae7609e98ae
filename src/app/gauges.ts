import { AdapterError } from '../errors.ts'
import type { Balance, Journal } from '../journal/index.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { PartnerRegistry } from '../partners/index.ts'
import type { ProxyContext } from '../proxy/index.ts'
import type { FairGate, RateLimits } from '../upstream/index.ts'
import type { Clock } from '../clock.ts'

/** Who looks at the metrics waits no longer for a journal that does not answer. */
const JOURNAL_MS = 2_000

const priorities = ['write', 'read', 'comparison'] as const
const states = ['confirmed', 'refused', 'unknown', 'parked', 'open'] as const

/** Adds what is true of requests and the queue at the moment when somebody asks. */
export function addGauges(
  metrics: Metrics,
  { inFlight, byteBudget }: Pick<ProxyContext, 'inFlight' | 'byteBudget'>,
  registry: Pick<PartnerRegistry, 'underWay'>,
  rateLimits: RateLimits,
  gates: Readonly<Record<'pass_through' | 'read', FairGate>>,
): void {
  metrics.addGauge({ name: 'in_flight_requests', help: 'Requests that are being handled.' }, () =>
    inFlight.count(),
  )
  metrics.addGauge(
    {
      name: 'partner_requests',
      help: 'Requests that are being handled, with their partner as it is or as it was before a reload.',
      labels: ['partner', 'revision'],
    },
    () =>
      registry
        .underWay()
        .map(({ partner, revision, requests }) => ({ labels: { partner, revision }, value: requests })),
  )
  metrics.addGauge({ name: 'in_flight_bytes', help: 'Bytes of request bodies that are held.' }, () =>
    byteBudget.held(),
  )
  metrics.addGauge(
    { name: 'connections_in_use', help: 'Connections to V3 that a request holds.', labels: ['kind'] },
    () => Object.entries(gates).map(([kind, gate]) => ({ labels: { kind }, value: gate.held() })),
  )
  metrics.addGauge(
    { name: 'queue_length', help: 'Calls that wait for their turn.', labels: ['priority'] },
    () => priorities.map((priority) => ({ labels: { priority }, value: rateLimits.waiting(priority) })),
  )
}

/**
 * Adds the ledger: how many records came, and what they are now. Both gauges of one page are read together, so that
 * received = confirmed + refused + unknown + parked + open holds on it.
 */
export function addJournalGauges(
  metrics: Metrics,
  journal: Pick<Journal, 'balances' | 'isAvailable'>,
  clock: Clock,
): void {
  let asked: Promise<readonly Balance[]> | undefined
  const balances = (): Promise<readonly Balance[]> =>
    (asked ??= inTime(journal.balances(), clock).finally(() => {
      asked = undefined
    }))
  metrics.addGauge(
    {
      name: 'journal_received_total',
      help: 'Records that came since the journal was made.',
      labels: ['partner'],
      shared: true,
    },
    async () => (await balances()).map(({ partner, received }) => ({ labels: { partner }, value: received })),
  )
  metrics.addGauge(
    {
      name: 'journal_records',
      help: 'What became of them.',
      labels: ['partner', 'state'],
      shared: true,
    },
    async () =>
      (await balances()).flatMap((balance) =>
        states.map((state) => ({ labels: { partner: balance.partner, state }, value: balance[state] })),
      ),
  )
  metrics.addGauge({ name: 'journal_available', help: 'Processes that can write the journal.' }, () =>
    journal.isAvailable() ? 1 : 0,
  )
}

/** Rejects when it takes too long: `journal_available` tells what the matter is. */
function inTime<Result>(answer: Promise<Result>, clock: Clock): Promise<Result> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(JOURNAL_MS, () => {
      reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The journal does not answer.'))
    })
    answer.then(resolve, reject).finally(cancel)
  })
}
