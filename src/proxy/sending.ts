import { AdapterError } from '../errors.ts'
import type { PostOutcome, V3Credentials, V3Writes } from '../v3/index.ts'
import type { ProxyContext } from './context.ts'
import type { Authorisation } from './partner.ts'
import type { PlannedRecord } from './plan.ts'
import { isDenial, type OnOutcome, postRecord, sendPlan } from './send.ts'

/** The sending of the records of one request. */
export interface Sending {
  /**
   * Posts every record within the partner's budget. Throws when the upstream denied the credentials before it took anything.
   */
  sendAll(records: readonly PlannedRecord[], onOutcome: OnOutcome): Promise<void>
  /** Posts one record; undefined for one that is refused without being posted. */
  sendOne(record: PlannedRecord): Promise<PostOutcome | undefined>
  /** The longest time that a call stood in the throttle's queue so far, ms. */
  queuedMs(): number
  /** The value of `Server-Timing`; undefined where nothing holds calls back. */
  timing(): string | undefined
}

/**
 * Creates the sending of one request. A token of the adapter's own that the service refuses (401) before it took anything is
 * renewed once, and the records go out again: nothing had been applied.
 */
export function createSending(context: ProxyContext, authorisation: Authorisation): Sending {
  const { partner, pace } = authorisation
  let queuedMs = 0
  let current: V3Writes | undefined
  const queued = (): number => Math.max(queuedMs, current?.queuedMs() ?? 0)
  const withWrites = async <Result>(
    credentials: V3Credentials,
    use: (writes: V3Writes) => Promise<Result>,
  ): Promise<Result> => {
    const writes = context.v3.openWrites(credentials, partner.budgetMs, pace, partner.batch)
    current = writes
    try {
      return await use(writes)
    } finally {
      queuedMs = queued()
      current = undefined
      writes.close()
    }
  }
  const twice = async <Result>(
    use: (writes: V3Writes) => Promise<Result>,
    tokenRefused: (result: Result) => boolean,
  ): Promise<Result> => {
    const { credentials, renew } = authorisation
    const result = await withWrites(credentials, use)
    return renew !== undefined && tokenRefused(result) ? withWrites(await renew(), use) : result
  }
  return {
    sendAll: async (records, onOutcome) => {
      const denial = await twice(
        (writes) => sendPlan(records, writes, partner, onOutcome),
        (result) => result?.status === 401,
      )
      if (denial === undefined) return
      context.events.credentialsDenied({ status: denial.status, partner: partner.id })
      const told = denial.entries[0]?.message ?? ''
      const message = told === '' ? `The service denied the credentials (${denial.status}).` : told
      throw new AdapterError(denial.status === 401 ? 'ADP_TOKEN' : 'ADP_FORBIDDEN', message)
    },
    sendOne: async ({ record }) => {
      if (record === undefined) return undefined
      return twice(
        (writes) => postRecord(record, writes, partner.bodyProfile),
        (outcome) => outcome.kind === 'refused' && isDenial(outcome.error) && outcome.error.status === 401,
      )
    },
    queuedMs: () => Math.round(queued()),
    timing: () => (pace === undefined ? undefined : `queue;dur=${Math.round(queued())}`),
  }
}

/**
 * Refuses a batch whose calls cannot leave within the partner's budget at its rate, where the partner wants that
 * (`refuseOverBudget`). Returns the seconds after which the queue has emptied so far that it would fit; undefined: it is
 * taken. A batch that is too large for any queue gets the time of the budget itself.
 */
export function overBudgetSeconds({ partner, pace }: Authorisation, calls: number): number | undefined {
  if (!partner.refuseOverBudget || pace === undefined) return undefined
  const overMs = pace.throttle.estimateMs(calls) - partner.budgetMs
  return overMs <= 0 ? undefined : Math.max(1, Math.ceil(Math.min(overMs, partner.budgetMs) / 1_000))
}
