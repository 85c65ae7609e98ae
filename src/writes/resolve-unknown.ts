import { AdapterError } from '../errors.ts'
import type { KnownMarks } from '../journal/index.ts'
import type { Partner } from '../partners/partner.ts'
import { decideReadBack, type ReadBack, readMarks, toReadBackFilter } from '../translate/index.ts'
import type { PostOutcome, ReadOutcome, SentTogether, UnknownReason, V3Record } from '../v3/index.ts'
import type { WriteContext } from './context.ts'
import type { Execution } from './execution.ts'
import { type Plan, planAgain } from './plan.ts'

interface ReadBackOptions {
  readonly batch: number
  readonly partner: Partner
  /** True if V2 may have applied records of the batch before this run. Newer records may then precede them in the journal. */
  readonly wasOnV2: boolean
  /** Pauses before the reads, in milliseconds. Only the last read proves absence: a write may be late, and a read may be stale. */
  readonly spacingMs: readonly number[]
  readonly leftMs: () => number
  /** Returns the execution of records that were sent together, or `undefined` for a record that was posted alone. */
  readonly executionOf: (together: SentTogether | undefined) => Execution | undefined
  /** True if a client waits. If false, the reads stop early for a `$batch` that may outlast the budget, and a later run continues them. */
  readonly clientWaits: boolean
  /** Reads AttendanceRecords of V3 with this raw query and the priority of a write, or reads the mark of `record` from V2. */
  readonly read: (query: string, record: V3Record) => Promise<ReadOutcome>
}

interface ReadBackTask {
  readonly record: V3Record
  readonly position: number
  /**
   * Time of receipt of the record's batch, in milliseconds since the epoch. `RecordedOn` is not used, because the client may have set it.
   */
  readonly receivedMs: number
}

interface Sent {
  /** `now` if this run sent the record, `before` if an earlier run sent the record, `never` if the record was not sent. */
  readonly how: 'now' | 'before' | 'never'
  /** The earliest monotonic time in milliseconds at which the record can have been sent. Default: the receipt of the record. */
  readonly fromMs?: number | undefined
  /** The latest monotonic time in milliseconds at which the record can have been sent. Default: now. */
  readonly toMs?: number | undefined
  /** True if the record can no longer arrive at V3. Default false. */
  readonly isPast?: boolean
  /** The execution of the `$batch` with the record, or `undefined` if the record was posted alone. */
  readonly execution?: Execution | undefined
}

/** Finds the outcome of a record that may have been applied, and posts the record again if it was not applied. */
type ResolveUnknown = (
  task: ReadBackTask,
  post: () => Promise<PostOutcome>,
  reason: UnknownReason,
  sent: Sent,
) => Promise<PostOutcome>

/** Returns false for a partner whose records are never read back. For such a partner the adapter cannot check V3 before a post. */
export const isReadBack = ({ readBackAfterMs }: { readonly readBackAfterMs: readonly number[] }): boolean =>
  readBackAfterMs.length > 0

/** Maximum number of records that are loaded from older batches with unknown outcomes, newest first. A single batch may have this many. */
const LOST_RECORDS = 20_000
/** Maximum number of repeated posts of one record in one run. If every reply is lost, recovery continues with the record. */
const MAX_POSTS = 2
/**
 * Maximum number of reads for one `$batch` in the time of the last scheduled pause. After the scheduled reads, the pause of each record
 * grows with the number of missing records, so that large batches keep to this rate.
 */
const READS_IN_PAUSE = 10
const unclear: ReadBack = { kind: 'unclear' }

/**
 * Creates the function that resolves unknown outcomes (product contract 3). The function reads the mark of the learner and event from V3,
 * decides by `readBackRules`, and confirms the record or posts it again. An outcome that stays unclear is `unknown`. The function never
 * overwrites a newer mark.
 */
export function createResolveUnknown(
  context: WriteContext,
  { batch, partner, wasOnV2, spacingMs, leftMs, read, executionOf, clientWaits }: ReadBackOptions,
): ResolveUnknown {
  const { journal, echoes, clock, nowMs, onVisible } = context
  const readLost = createLostReading(context, partner)
  const allMs = spacingMs.reduce((sum, ms) => sum + ms, 0)
  /**
   * Returns the marks of the record's key that the journal knows, or `undefined` if the journal fails. If V2 may have applied the batch
   * before, records that were received after the first copy of the batch count as newer.
   */
  const knownMarks = ({ position, receivedMs }: ReadBackTask): Promise<KnownMarks | undefined> =>
    journal.knownMarks({ batch, position }, wasOnV2 ? receivedMs : undefined).catch(unlessUnreachable)
  const conclude = async (
    task: ReadBackTask,
    answer: unknown,
    sent: Sent,
    executing: boolean,
  ): Promise<ReadBack> => {
    const { record, receivedMs } = task
    const marks = readMarks(record, answer)
    if (marks === undefined) return unclear
    const known = await knownMarks(task)
    if (known === undefined) return unclear
    const { how, fromMs, toMs = clock.nowMs() } = sent
    const wallOf = (ms: number): number => nowMs() - (clock.nowMs() - ms)
    const decide = (lost: readonly V3Record[]): ReadBack =>
      decideReadBack(record, marks, {
        ...known,
        lost,
        profile: echoes.profile(),
        sent: {
          fromMs: fromMs === undefined ? receivedMs : wallOf(fromMs),
          // For a record that was never sent, uses its time of receipt, because every mark that was written later is newer than the record.
          toMs: how === 'never' ? receivedMs : wallOf(toMs),
        },
        byV2: wasOnV2 && how === 'before',
        executing,
      })
    const finding = decide([])
    if (executing) return finding
    if (finding.kind !== 'unclear' && finding.kind !== 'overwritten') return finding
    const lost = marks.length > 1 ? [...known.lostBefore, ...known.lost] : known.lost
    return lost.length === 0 ? finding : decide(await readLost(lost))
  }
  const pause = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve))
  const isUnderWay = ({ execution }: Sent): boolean =>
    execution !== undefined && clock.nowMs() < execution.untilMs()
  /**
   * Returns the pause before a read in milliseconds, or `undefined` if none is scheduled. Further reads follow while a `$batch` executes.
   */
  const pauseBefore = (index: number, { execution }: Sent, sureMs: number): number | undefined => {
    const spaceMs = spacingMs[Math.min(index, spacingMs.length - 1)]
    if (spaceMs === undefined) return undefined
    // The first read needs no pause if the record was sent long ago. A later read needs one, because the read before it decided nothing.
    const untilSureMs = Math.max(0, Math.ceil(sureMs - clock.nowMs()))
    if (index === 0) return Math.min(spaceMs, untilSureMs)
    if (index < spacingMs.length || execution === undefined) return spaceMs
    return Math.min(spaceMs * Math.max(1, execution.missing() / READS_IN_PAUSE), untilSureMs)
  }
  const readUntilSure = async (
    task: ReadBackTask,
    sent: Sent,
    sureMs: () => number,
  ): Promise<ReadBack | 'executing'> => {
    const query = `$filter=${encodeURIComponent(toReadBackFilter(task.record))}`
    /** True while V3 may still be executing the record's `$batch`, so that a read proves nothing about a missing mark. */
    let executing = isUnderWay(sent)
    for (let index = 0; executing || index < spacingMs.length; index += 1) {
      const pauseMs = pauseBefore(index, sent, sureMs())
      if (pauseMs === undefined || leftMs() <= pauseMs) break
      await pause(pauseMs)
      executing = isUnderWay(sent)
      // A record that this run sent gets all scheduled reads, even if they come late.
      const isSure = index >= spacingMs.length - 1 || (sent.how !== 'now' && clock.nowMs() >= sureMs())
      const outcome = await read(query, task.record)
      // Another record of the `$batch` may have appeared during the read, so that the `$batch` is not over yet.
      executing ||= isUnderWay(sent)
      const finding = outcome.kind === 'read' ? await conclude(task, outcome.json, sent, executing) : unclear
      if (finding.kind === 'overwritten' || (finding.kind === 'applied' && finding.certain)) return finding
      if (outcome.kind === 'refused') break
      if (isSure && finding.kind !== 'unclear') return finding
      if (executing && !clientWaits && sureMs() - clock.nowMs() >= leftMs()) break
    }
    return executing ? 'executing' : unclear
  }
  const readBack = async (task: ReadBackTask, sent: Sent): Promise<ReadBack | 'executing'> => {
    const lostMs = clock.nowMs()
    const { execution, isPast, toMs = lostMs } = sent
    const sureMs = (): number => (isPast === true ? lostMs : (execution?.untilMs() ?? toMs + allMs))
    const finding = await readUntilSure(task, sent, sureMs)
    if (finding === 'executing') return finding
    if (finding.kind !== 'applied') {
      // Waits until this record can no longer arrive at V3. The wait may exceed the budget. Newer records of the key are sent once this
      // record has ended, and this record must not overwrite them.
      if (sent.how !== 'never' && clock.nowMs() < sureMs()) await pause(sureMs() - clock.nowMs())
      return finding
    }
    if (finding.certain) execution?.appeared()
    if (finding.proof !== undefined) echoes.readBack(task.record, finding.proof)
    if (sent.how === 'now') onVisible(clock.nowMs() - lostMs)
    return finding
  }
  /**
   * Returns an outcome that leaves the record open, because its `$batch` is not over and newer records of its key must wait. If the journal
   * is not durable, waits for the end of the `$batch` instead.
   */
  const leaveExecuting = async ({ execution }: Sent, reason: UnknownReason): Promise<PostOutcome> => {
    const unknown = { kind: 'unknown', reason } as const
    if (execution === undefined) return unknown
    if (journal.durable) return { ...unknown, reason: 'stillExecuting', sinceMs: execution.sinceMs() }
    for (let ms = 1; ms > 0; ms = execution.untilMs() - clock.nowMs()) await pause(ms)
    return unknown
  }
  return async (task, post, first, before) => {
    let [reason, sent] = [first, before]
    for (let posts = 0; posts <= MAX_POSTS; posts += 1) {
      const finding = await readBack(task, sent)
      if (finding === 'executing') return leaveExecuting(sent, reason)
      if (finding.kind === 'applied') return { kind: 'accepted', reply: finding.reply }
      if (finding.kind === 'overwritten' || finding.kind === 'superseded')
        return { kind: 'unknown', reason: finding.kind }
      if (finding.kind === 'unclear' || posts === MAX_POSTS) break
      sent =
        sent.how === 'never' ? { how: 'now', fromMs: clock.nowMs() } : { how: sent.how, fromMs: sent.fromMs }
      const outcome = await post()
      if (outcome.kind === 'refused' && outcome.error.status === 409) {
        // The service reports a second mark as a conflict, so the existing mark may be the mark of this record.
        const again = await readBack(task, sent)
        return again !== 'executing' && again.kind === 'applied'
          ? { kind: 'accepted', reply: again.reply }
          : outcome
      }
      if (outcome.kind !== 'unknown') return outcome
      reason = outcome.reason
      sent = { ...sent, execution: executionOf(outcome.together) }
    }
    return { kind: 'unknown', reason }
  }
}

/** Creates a function that returns older unknown records as they were posted. Skips batches of other partners, which have other rules. */
function createLostReading({ journal, slicing }: WriteContext, partner: Partner) {
  const plans = new Map<number, Promise<Plan | undefined>>()
  let room = LOST_RECORDS
  const read = async (batch: number): Promise<Plan | undefined> => {
    const stored = await journal.load(batch).catch(unlessUnreachable)
    if (stored?.partner !== partner.id) return undefined
    room -= stored.records.length
    return (await planAgain(stored, partner, slicing.open()))?.plan
  }
  return async (lost: KnownMarks['lost']): Promise<readonly V3Record[]> => {
    const records: V3Record[] = []
    for (const { batch, position } of lost.toReversed()) {
      const known = plans.get(batch)
      if (known === undefined && room <= 0) continue
      const reading = known ?? read(batch)
      plans.set(batch, reading)
      const record = (await reading)?.records[position]?.record
      if (record !== undefined) records.push(record)
    }
    return records
  }
}

function unlessUnreachable(cause: unknown): undefined {
  if (cause instanceof AdapterError) return undefined
  throw cause
}
