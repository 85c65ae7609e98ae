import type { WallClock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import type { Store } from './store.ts'
import { damagedJournal, type StoreError } from './store-error.ts'

/** The kind of access to the store that succeeded or failed. With a full disk, queries succeed and commits fail. */
export type Access = 'commit' | 'query'

export interface Availability {
  isAvailable(): boolean
  /** Returns true from the discovery of damage until the store counts as recovered, whatever else fails in between. */
  isDamaged(): boolean
  /** Returns true while the last commit failed. Only another commit shows that the store accepts writes again. */
  needsCommit(): boolean
  reached(by: Access): void
  failed(storeError: StoreError, by: Access): void
  /** Runs a query. Throws `ADP_JOURNAL_UNAVAILABLE`, `ADP_JOURNAL_DAMAGED`, or `ADP_INTERNAL` for an invalid statement. */
  readonly ask: <Result>(question: () => Promise<Result>) => Promise<Result>
}

/** A failure counts as a relapse if it follows a recovery within this time plus the last calm period. */
const RELAPSE_MS = 60_000
/** How long the store must work after its first relapse before it counts as recovered. Each further relapse doubles the time, up to the maximum. */
const FIRST_CALM_MS = 2_000
const LONGEST_CALM_MS = 300_000

/** Errors of the journal itself, which do not show whether the store can be reached. */
const ownErrors: ReadonlySet<string> = new Set(['ADP_CONFIGURATION', 'ADP_JOURNAL_DAMAGED'])

/**
 * Creates the tracker of the store's health. Calls `onChange` with the reason when the store fails, and with `undefined` when the store
 * recovers. After a relapse the store must work for a calm period before it counts as recovered, so that a store that fails again and again
 * is reported once. Damage is also reported during another failure, because damage does not pass by itself.
 */
export function createAvailability(
  store: Pick<Store, 'toStoreError'>,
  clock: Pick<WallClock, 'nowMs' | 'after'>,
  onChange: (failure: string | undefined) => void,
): Availability {
  const failing = new Set<Access>()
  let available = true
  let damage: string | undefined
  let recoveredMs = -Infinity
  let calmMs = 0
  let cancel: (() => void) | undefined
  const recover = (): void => {
    cancel = undefined
    available = true
    damage = undefined
    recoveredMs = clock.nowMs()
    onChange(undefined)
  }
  const reached = (by: Access): void => {
    if (available) return
    failing.delete(by)
    if (by === 'commit') failing.clear()
    if (failing.size > 0 || cancel !== undefined) return
    if (calmMs === 0) recover()
    else cancel = clock.after(calmMs, recover)
  }
  const failed = (storeError: StoreError, by: Access): void => {
    // Ignores the failure if another transaction was in the way or the data cannot be stored, because the store itself then works.
    if (storeError.contended === true || storeError.kind === 'refused') return
    failing.add(by)
    cancel?.()
    cancel = undefined
    const isNewDamage = storeError.kind === 'damaged' && damage === undefined
    if (isNewDamage) damage = storeError.message
    if (!available) {
      if (isNewDamage) onChange(storeError.message)
      return
    }
    available = false
    const isRelapse = clock.nowMs() - recoveredMs < RELAPSE_MS + calmMs
    calmMs = isRelapse ? Math.min(Math.max(FIRST_CALM_MS, calmMs * 2), LONGEST_CALM_MS) : 0
    onChange(storeError.message)
  }
  return {
    isAvailable: () => available,
    isDamaged: () => damage !== undefined,
    needsCommit: () => failing.has('commit'),
    reached,
    failed,
    ask: async (question) => {
      try {
        const result = await question()
        reached('query')
        return result
      } catch (error) {
        if (error instanceof AdapterError && ownErrors.has(error.code)) throw error
        const storeError = store.toStoreError(error)
        failed(storeError, 'query')
        throw toError(storeError, error)
      }
    },
  }
}

function toError({ kind, message }: StoreError, cause: unknown): AdapterError {
  if (kind === 'damaged') return damagedJournal(message, cause)
  const code = kind === 'internal' ? 'ADP_INTERNAL' : 'ADP_JOURNAL_UNAVAILABLE'
  return new AdapterError(
    code,
    `The journal cannot be read: ${message}. No record was lost. Try again later.`,
    { cause },
  )
}
