import type { WallClock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import type { Store } from './store.ts'
import { damagedJournal, type StoreError } from './store-error.ts'

/** How the store was asked: a full disk answers questions and takes no group. */
export type Access = 'commit' | 'query'

/** Whether the store could be reached the last time that it was asked. */
export interface Availability {
  isAvailable(): boolean
  /** True from the time that damage was found, whatever was the matter before, until the store takes writes again. */
  isDamaged(): boolean
  /** True while the last commit failed: only another commit shows that the store takes writes again. */
  needsCommit(): boolean
  reached(by: Access): void
  failed(storeError: StoreError, by: Access): void
  /**
   * Runs a question to the store. Errors: `ADP_JOURNAL_UNAVAILABLE`; `ADP_JOURNAL_DAMAGED`; `ADP_INTERNAL` for a statement that
   * the store does not understand.
   */
  readonly ask: <Result>(question: () => Promise<Result>) => Promise<Result>
}

/** A failure that comes so soon after a recovery is the same one again. */
const RELAPSE_MS = 60_000
/** How long the store must do without a failure after its first relapse; each one doubles it, up to the longest. */
const FIRST_CALM_MS = 2_000
const LONGEST_CALM_MS = 300_000

/** Errors of the journal itself, which say nothing of whether the store can be reached. */
const ownErrors: ReadonlySet<string> = new Set(['ADP_CONFIGURATION', 'ADP_JOURNAL_DAMAGED'])

/**
 * Creates the memory of it. `onChange` is called when it changes, with the reason where it fails: a store that fails and answers by
 * turns is reported once, and as recovered only after it has been calm for longer and longer. Damage is reported beside any other failure, since it
 * does not pass by itself.
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
    // Others in the way, or data that cannot be stored: the store itself is well.
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
  return new AdapterError(code, `The journal cannot be read: ${message}.`, { cause })
}
