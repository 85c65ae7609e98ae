import { isDamagedBatch, type RecordRef } from '../journal/index.ts'
import type { Partner } from '../partners/partner.ts'
import type { PostOutcome, ReadOutcome, V3Record } from '../v3/index.ts'
import type { WriteContext } from './context.ts'
import { runStored } from './finish-batch.ts'
import { createResolveUnknown } from './resolve-unknown.ts'
import type { RunSession } from './run.ts'

/** Reads the mark of a learner and event from V2, in the form of V3. */
export type ReadMarkOfV2 = (record: V3Record, timeoutMs: number) => Promise<ReadOutcome>

/** What reads older records back. */
interface OlderReading {
  readonly partner: Partner
  readonly readV3: (query: string, timeoutMs: number) => Promise<ReadOutcome>
  readonly readV2: ReadMarkOfV2
  /** By the clock, ms. */
  readonly deadlineMs: number
}

/** A pause before the journal is asked again, where another run has an older record or it could not be read. */
const AGAIN_AFTER_MS = 200
/** V2 is read where V3 has not answered within this time, or this share of what is left. */
const V3_WITHIN_MS = 2_000
const V3_SHARE = 1 / 3
/** Where a partner's lost writes are not read back otherwise. */
const UNSCHEDULED_MS = [0, 1_000]

/**
 * Waits until V2 may be sent a batch: no older record of its keys is under way on V3, on any instance, and none has an unknown outcome.
 * Those are read back here and now. False: the time was over first, so V2 must not be sent it. Errors: those of the journal.
 */
export async function waitForOlder(
  context: WriteContext,
  batch: number,
  keys: readonly string[],
  reading: OlderReading,
): Promise<boolean> {
  const { journal, predecessors, clock } = context
  const own = firstOfEach(batch, keys)
  if (own.length === 0) return true
  for (;;) {
    const unsettled = await journal.olderUnsettled(own)
    if (unsettled.length === 0) return true
    const leftMs = reading.deadlineMs - clock.nowMs()
    if (leftMs <= 0) return false
    const open = unsettled.filter(({ isOpen }) => isOpen).map(({ older }) => older)
    if (open.length > 0) {
      if (!(await predecessors.until(open, leftMs))) return false
      continue
    }
    const byBatch = Map.groupBy(
      unsettled.map(({ older }) => older),
      (older) => older.batch,
    )
    const read = [...byBatch].map(([number, records]) => {
      const positions = new Set(records.map(({ position }) => position))
      return readOlder(
        context,
        number,
        [...positions].sort((one, other) => one - other),
        reading,
      )
    })
    if ((await Promise.all(read)).includes(true)) continue
    await new Promise<void>((resolve) => void clock.after(Math.min(AGAIN_AFTER_MS, leftMs), resolve))
  }
}

/** The others of a key have the same older ones; a record without a key has none. */
function firstOfEach(batch: number, keys: readonly string[]): readonly RecordRef[] {
  const first = new Map<string, RecordRef>()
  for (const [position, key] of keys.entries())
    if (key !== '' && !first.has(key)) first.set(key, { batch, position })
  return [...first.values()]
}

/**
 * Finds out what became of records of one batch whose outcome is unknown, before V2 is sent a newer one of their keys. They are read and
 * never posted: V2 serves now. False: nothing was found out, here or because another run has them.
 */
async function readOlder(
  context: WriteContext,
  batch: number,
  positions: readonly number[],
  { partner, readV3, readV2, deadlineMs }: OlderReading,
): Promise<boolean> {
  const { journal, active, clock } = context
  const stored = await journal.load(batch).catch(unlessDamaged)
  // The rules of another partner are not known here.
  if (stored?.payload === undefined || stored.partner !== partner.id || active.has(batch)) return false
  const opened = await journal.reopen(batch, positions, undefined, 'beforeRelay')
  if (opened.after.size === 0) return false
  const leftMs = (): number => deadlineMs - clock.nowMs()
  let isV3Silent = false
  const read = async (query: string, record: V3Record): Promise<ReadOutcome> => {
    if (!isV3Silent) {
      const seen = await readV3(query, Math.min(V3_WITHIN_MS, leftMs() * V3_SHARE))
      if (seen.kind === 'read') return seen
      isV3Silent = true
    }
    return readV2(record, leftMs())
  }
  const spacingMs = partner.readBackAfterMs.length === 0 ? UNSCHEDULED_MS : partner.readBackAfterMs
  const openSession = (wasOnV2: boolean): RunSession => {
    const readBack = createResolveUnknown(context, { batch, wasOnV2, spacingMs, leftMs, read })
    return {
      partner: partner.id,
      budgetMs: leftMs(),
      withdrawn: new Promise(() => undefined),
      postRecords: async (tasks, _permission, onOutcome) => {
        const readOne = async ({ position, record }: (typeof tasks)[number]): Promise<void> => {
          const sent = { how: 'before', toMs: clock.nowMs() } as const
          const post = (): Promise<PostOutcome> => Promise.resolve(neverPosted)
          onOutcome(position, await readBack({ position, record }, post, 'connectionLost', sent))
        }
        await Promise.all(tasks.map(readOne))
        return undefined
      },
    }
  }
  const tally = await runStored(context, stored, { partner, clientWaits: true, openSession }, opened)
  return tally.unknown < opened.after.size
}

const neverPosted: PostOutcome = { kind: 'notApplied', reason: 'stopped', retryAfterMs: undefined }

function unlessDamaged(cause: unknown): undefined {
  if (isDamagedBatch(cause)) return undefined
  throw cause
}
