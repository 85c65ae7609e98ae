import { actOnEach, type Duty } from '../../heartbeat.ts'
import type { EvidenceEntry, EvidenceStore } from './evidence-store.ts'
import { addCounts, countName } from './count-name.ts'
import { type EvidenceKey, type PeriodKey, toEvidenceKey } from './evidence-key.ts'
import type { EvidenceScope } from './read-kept.ts'

/** What is added with the next group. */
interface PendingEntry {
  /** About how many hashes it has. */
  readonly size: number
  /** Undefined: it was made with the key of a period that has ended, and is lost. */
  readonly toEntry: (key: EvidenceKey) => EvidenceEntry | undefined
  /** The check of an exchange: where it is lost, it counts as missed. */
  readonly check?: CheckedExchange
}

interface CheckedExchange {
  readonly kind: string
  readonly check: string
}

export type EvidenceKeeper = ReturnType<typeof createEvidenceKeeper>

interface EvidenceKeeperOptions {
  readonly store: Pick<EvidenceStore, 'key' | 'add' | 'destroyExpired'>
  /** Called with the number of checks whose evidence was kept, or lost. */
  readonly onKept: (partner: string, checks: number, isKept: boolean) => void
}

/** Between two groups; also how old ids in memory get, ms. */
const EVERY_MS = 5_000
/** Between two looks for keys whose time is over, and until the first one: many a process does not live for an hour. */
const [DESTROY_EVERY_MS, DESTROY_FIRST_MS] = [3_600_000, 5_000]
/** Hashes that wait for their group; more are lost. */
const MAX_WAITING = 20_000
/** Hashes of one transaction: the journal has its turn in between. */
const MAX_TOGETHER = 500

interface Waiting {
  readonly scope: EvidenceScope
  readonly entries: PendingEntry[]
  /** Exchanges that are lost, by the names of their counts. */
  missed: Map<string, number>
}

/** Creates what takes all that one instance has seen and compared to the journal, in groups. Exchanges whose evidence could not be kept count as missed. */
export function createEvidenceKeeper(options: EvidenceKeeperOptions) {
  const { store, onKept } = options
  const keys = new Map<string, Promise<PeriodKey>>()
  let waiting = new Map<string, Waiting>()
  let size = 0
  const waitingOf = ({ partner, stage, revision }: EvidenceScope): Waiting => {
    const name = nameOf({ partner, stage, revision })
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
        // A period that has just ended; the next group begins another.
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
      // A commit whose reply was lost counts them both as compared and as missed: more has to be seen then, never less.
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
    /** The key of the running period of a scope. Errors: those of the store. */
    key: (scope: EvidenceScope): Promise<PeriodKey> => {
      const name = nameOf(scope)
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
    /** An exchange was not compared. */
    miss,
    duties: [
      { name: 'evidence', everyMs: EVERY_MS, atStop: true, act: keep },
      {
        // Also of partners that nothing is compared of any more.
        name: 'expired evidence',
        everyMs: DESTROY_EVERY_MS,
        firstMs: DESTROY_FIRST_MS,
        act: () => store.destroyExpired(),
      },
    ] satisfies Duty[],
  }
}

const nameOf = ({ partner, stage, revision }: EvidenceScope): string => `${partner} ${stage} ${revision}`

/** As many of the first as go into one transaction, and at least one. */
function firstOf(entries: readonly PendingEntry[]): readonly PendingEntry[] {
  let size = 0
  const end = entries.findIndex((entry, at) => {
    size += entry.size
    return at > 0 && size > MAX_TOGETHER
  })
  return end === -1 ? entries.slice() : entries.slice(0, end)
}
