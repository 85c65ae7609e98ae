import { sql } from 'kysely'

import type { Journal, Settled } from '../../journal/index.ts'
import type { ConsoleDatabase } from './open-database.ts'
import type { StepKind } from './port.ts'
import { tableOf } from './schema.ts'

export interface NewStep {
  readonly batch: number
  readonly atMs: number
  readonly kind: StepKind
  readonly instance: number | undefined
  readonly ranges: readonly (readonly [number, number])[]
  readonly reason: string | undefined
}

/** The maximum number of queued steps. Steps of the same batch, kind and reason count as one step. */
const MAX_WAITING = 5_000
/** The maximum number of batches whose later settlement becomes a step. At this number the list is cleared. */
const MAX_FOLLOWED = 10_000

/** Creates the bounded queue of steps. Calls of the journal add steps, and the background work stores them. */
export function createStepQueue(nowMs: () => number) {
  type Waiting = Omit<NewStep, 'ranges'> & { readonly positions: Set<number> }
  let waiting = new Map<string, Waiting>()
  let lost = 0
  return {
    add: (step: Omit<NewStep, 'ranges' | 'atMs'>, positions: Iterable<number>): void => {
      const key = `${step.batch} ${step.kind} ${step.reason ?? ''}`
      const known = waiting.get(key)
      if (known === undefined && waiting.size >= MAX_WAITING) {
        lost += 1
        return
      }
      const own = known ?? { ...step, atMs: nowMs(), positions: new Set() }
      for (const position of positions) own.positions.add(position)
      waiting.set(key, own)
    },
    lose: (count: number): void => {
      lost += count
    },
    /** Removes and returns the queued steps, and the number of steps that were dropped since the last call. */
    take: (): { readonly steps: readonly NewStep[]; readonly lost: number } => {
      const steps = [...waiting.values()].map(({ positions, ...step }) => ({ ...step, ranges: toRanges(positions) })) // prettier-ignore
      const taken = { steps, lost }
      waiting = new Map()
      lost = 0
      return taken
    },
  }
}

/** Wraps a journal and queues its exceptional steps. `knownMarks` counts as a read-back, since every read-back begins with this call. */
export function observeJournal(
  journal: Journal,
  { add }: Pick<ReturnType<typeof createStepQueue>, 'add'>,
): Journal {
  const followed = new Set<number>()
  const note = (kind: StepKind, batch: number, positions: Iterable<number>, reason?: string): void => {
    add({ batch, kind, instance: journal.lease(), reason }, positions)
    if (followed.size >= MAX_FOLLOWED) followed.clear()
    if (kind !== 'replayed') followed.add(batch)
  }
  type Taken = Awaited<ReturnType<Journal['takeOver']>>
  const noteAll = (kind: StepKind, taken: Taken, reason?: string): Taken => {
    for (const { batch, after } of taken) note(kind, batch, after.keys(), reason)
    return taken
  }
  const observed: Partial<Journal> = {
    begin: async (batch) => {
      const begun = await journal.begin(batch)
      if (begun.kind === 'known') note(begun.running ? 'joined' : 'replayed', begun.batch, [])
      return begun
    },
    settle: async (batch, outcomes, lease) => {
      await journal.settle(batch, outcomes, lease)
      const isFollowed = followed.has(batch)
      // This check skips the grouping for most calls: every outcome passes here, and few outcomes are steps.
      if (!isFollowed && outcomes.every((outcome) => stepOf(outcome, false) === undefined)) return
      const byStep = Map.groupBy(outcomes, (outcome) => stepOf(outcome, isFollowed))
      for (const [step, own] of byStep) {
        if (step === undefined) continue
        for (const [reason, some] of Map.groupBy(own, (outcome) => outcome.reason))
          note(step, batch, some.map(({ position }) => position), reason) // prettier-ignore
      }
    },
    reopen: async (batch, positions, credentials, how) => {
      const opened = await journal.reopen(batch, positions, credentials, how)
      if (opened.after.size > 0) note('retried', batch, opened.after.keys())
      return opened
    },
    knownMarks: (record, sinceMs) => {
      note('readBack', record.batch, [record.position])
      return journal.knownMarks(record, sinceMs)
    },
    takeOver: async () => noteAll('takenOver', await journal.takeOver()),
    findAbandoned: async (...given) => noteAll('retried', await journal.findAbandoned(...given), 'abandoned'),
  }
  return new Proxy(journal, {
    get: (target, name): unknown => Reflect.get(name in observed ? observed : target, name),
  })
}

function stepOf({ state }: Settled, isFollowed: boolean): StepKind | undefined {
  if (state === 'unknown' || state === 'parked') return state
  return isFollowed ? 'recovered' : undefined
}

export async function keepSteps(
  { dialect, exclusively }: ConsoleDatabase,
  steps: readonly NewStep[],
  lost: number,
): Promise<void> {
  const columns = { batch: 'bigint', at_ms: 'bigint', kind: 'text', instance: 'bigint', positions: 'text', reason: 'text' } as const // prettier-ignore
  const rows = steps.map(({ atMs, ranges, ...step }) => ({
    ...{ ...step, at_ms: Math.floor(atMs), positions: JSON.stringify(ranges) },
  }))
  const names = sql.raw(Object.keys(columns).join())
  await exclusively(async (db) => {
    await sql`insert into console_steps (${names}) select ${names} from ${tableOf(dialect, columns, rows)}`.execute(db) // prettier-ignore
    if (lost > 0) await sql`update console_index set lost_steps = lost_steps + ${lost}`.execute(db)
  })
}

/** The maximum number of ranges of a step. If there are more, a single range from the first position to the last is stored. */
const MAX_RANGES = 500

/** Converts positions to ranges that include both ends. */
export function toRanges(positions: Iterable<number>): readonly (readonly [number, number])[] {
  const ranges: [number, number][] = []
  for (const position of [...positions].sort((one, other) => one - other)) {
    const last = ranges.at(-1)
    if (last !== undefined && position <= last[1] + 1) last[1] = position
    else ranges.push([position, position])
  }
  const [first, last] = [ranges[0], ranges.at(-1)]
  return ranges.length <= MAX_RANGES || first === undefined || last === undefined ? ranges : [[first[0], last[1]]] // prettier-ignore
}
