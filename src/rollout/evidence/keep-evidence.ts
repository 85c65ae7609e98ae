import { actOnEach, type Duty } from '../../heartbeat.ts'
import type { EvidenceEntry, EvidenceStore } from './evidence-store.ts'
import { addCounts, countName } from './count-name.ts'
import { type EvidenceKey, type PeriodKey, toEvidenceKey } from './evidence-key.ts'
import type { EvidenceScope } from './read-kept.ts'

interface PendingEntry {
  /** The approximate number of hashes in the entry. */
  readonly size: number
  /** Returns the entry for the period of `key`. `undefined` means that the entry is lost, because its key is from an ended period. */
  readonly toEntry: (key: EvidenceKey) => EvidenceEntry | undefined
  /**
   * The kind and the check of the compared exchange, absent if nothing was compared. If the entry is lost, the exchange counts as missed.
   */
  readonly check?: CheckedExchange
}

interface CheckedExchange {
  readonly kind: string
  readonly check: string
}

export type EvidenceKeeper = ReturnType<typeof createEvidenceKeeper>

interface EvidenceKeeperOptions {
  readonly store: Pick<EvidenceStore, 'key' | 'add' | 'destroyExpired'>
  readonly onKept: (partner: string, checks: number, isKept: boolean) => void
}

/** The interval in milliseconds at which evidence is stored, which is also the longest time that ids stay in memory. */
const EVERY_MS = 5_000
/**
 * The interval at which expired keys are destroyed, and the delay before the first time, in milliseconds. The delay is short because many
 * processes end within an hour.
 */
const [DESTROY_EVERY_MS, DESTROY_FIRST_MS] = [3_600_000, 5_000]
/** Maximum number of waiting hashes. Further entries are lost. */
const MAX_WAITING = 20_000
/** Maximum number of hashes in one transaction, so that the journal can commit in between. */
const MAX_TOGETHER = 500

interface Waiting {
  readonly scope: EvidenceScope
  readonly entries: PendingEntry[]
  missed: Map<string, number>
}

/** Creates the keeper, which stores what this instance has seen and compared. An exchange whose evidence is lost counts as missed. */
export function createEvidenceKeeper(options: EvidenceKeeperOptions) {
  const { store, onKept } = options
  const keys = new Map<string, Promise<PeriodKey>>()
  let waiting = new Map<string, Waiting>()
  let size = 0
  const waitingOf = ({ partner, stage, revision }: EvidenceScope): Waiting => {
    const name = scopeName({ partner, stage, revision })
    const known = waiting.get(name) ?? {
      scope: { partner, stage, revision },
      entries: [],
      missed: new Map<string, number>(),
    }
    waiting.set(name, known)
    return known
  }
  const miss = (scope: EvidenceScope, { kind, check }: CheckedExchange): void =>
    addCounts(waitingOf(scope).missed, [[countName('exchange', kind, check, 'missed'), 1]])
  const lose = (scope: EvidenceScope, entries: readonly PendingEntry[]): void => {
    const checks = entries.flatMap(({ check }) => check ?? [])
    for (const check of checks) miss(scope, check)
    if (checks.length > 0) onKept(scope.partner, checks.length, false)
  }
  const keepScope = async ({ scope, entries, missed }: Waiting): Promise<void> => {
    const { partner } = scope
    try {
      const key = toEvidenceKey(await store.key(scope))
      while (entries.length > 0 || missed.size > 0) {
        const group = firstOf(entries)
        const made = group.map((pending) => ({ pending, entry: pending.toEntry(key) }))
        const added = [...made.flatMap(({ entry }) => entry ?? []), { counts: missed, pairs: [] }]
        // Stops if the period has just ended. The next call of `store.key` begins a new period.
        if (!(await store.add(key.period, added))) break
        missed = new Map()
        entries.splice(0, group.length)
        const kept = made.filter(({ pending, entry }) => entry !== undefined && pending.check !== undefined)
        if (kept.length > 0) onKept(partner, kept.length, true)
        lose(
          scope,
          made.flatMap(({ pending, entry }) => (entry === undefined ? pending : [])),
        )
      }
    } finally {
      // Counts the remaining entries as missed. After a lost response to a commit they may also count as compared, which only makes the
      // advice stricter.
      lose(scope, entries)
      if (missed.size > 0) addCounts(waitingOf(scope).missed, missed)
    }
  }
  const keep = async (): Promise<void> => {
    const taken = waiting
    waiting = new Map()
    size = 0
    keys.clear()
    await actOnEach(taken.values(), keepScope)
  }
  return {
    /** Returns the key of the current period. Rejects with the errors of the store. */
    key: (scope: EvidenceScope): Promise<PeriodKey> => {
      const name = scopeName(scope)
      const known = keys.get(name) ?? store.key(scope)
      keys.set(name, known)
      known.catch(() => keys.delete(name))
      return known
    },
    add: (scope: EvidenceScope, entry: PendingEntry): void => {
      if (size + entry.size > MAX_WAITING) {
        lose(scope, [entry])
        return
      }
      size += entry.size
      waitingOf(scope).entries.push(entry)
    },
    miss,
    duties: [
      { name: 'evidence', everyMs: EVERY_MS, atStop: true, act: keep },
      {
        // Also destroys evidence of partners for which nothing is compared any more.
        name: 'expired evidence',
        everyMs: DESTROY_EVERY_MS,
        firstMs: DESTROY_FIRST_MS,
        act: () => store.destroyExpired(),
      },
    ] satisfies Duty[],
  }
}

const scopeName = ({ partner, stage, revision }: EvidenceScope): string => `${partner} ${stage} ${revision}`

/** Returns the first entries that fit into one transaction, but at least one entry. */
function firstOf(entries: readonly PendingEntry[]): readonly PendingEntry[] {
  let size = 0
  const end = entries.findIndex((entry, at) => {
    size += entry.size
    return at > 0 && size > MAX_TOGETHER
  })
  return end === -1 ? entries.slice() : entries.slice(0, end)
}
