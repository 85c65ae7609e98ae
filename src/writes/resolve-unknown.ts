import { AdapterError } from '../errors.ts'
import type { KnownMarks } from '../journal/index.ts'
import type { Partner } from '../partners/partner.ts'
import { decideReadBack, type ReadBack, readMarks, toReadBackFilter } from '../translate/index.ts'
import type { PostOutcome, ReadOutcome, SentTogether, UnknownReason, V3Record } from '../v3/index.ts'
import type { WriteContext } from './context.ts'
import type { Execution } from './execution.ts'
import { type Plan, planAgain } from './plan.ts'

/** Of which batch the records are that are read back, and with what. */
interface ReadBackOptions {
  readonly batch: number
  readonly partner: Partner
  /** V2 may have applied the records that were sent before this run, and newer records may have earlier places in the journal. */
  readonly wasOnV2: boolean
  /**
   * Pauses before each read, ms. An unanswered write may still be on its way, and a read may be stale: a write counts as not
   * applied only after the last scheduled read has not found it.
   */
  readonly spacingMs: readonly number[]
  /** The time that is left for the request, ms. */
  readonly leftMs: () => number
  /** Finds how far V3 has got with records that were sent together; undefined for a record that was posted by itself. */
  readonly executionOf: (together: SentTogether | undefined) => Execution | undefined
  /** False: recovery reads, and comes back for a `$batch` that is not over. */
  readonly clientWaits: boolean
  /** GETs AttendanceRecords with this raw query, or the same mark from V2, under the rate limit of writes. */
  readonly read: (query: string, record: V3Record) => Promise<ReadOutcome>
}

/** A record that is read back. */
interface ReadBackTask {
  readonly record: V3Record
  readonly position: number
  /** Of its batch, ms since the epoch. Not `RecordedOn`, which may be a time of the client. */
  readonly receivedMs: number
}

/** When a record was sent, by the clock. */
interface Sent {
  /** By this run, by an earlier one, or not at all. */
  readonly how: 'now' | 'before' | 'never'
  /** It was not sent before this, ms; undefined: since it was received. */
  readonly fromMs?: number | undefined
  /** It was not sent after this, ms; undefined: until now. */
  readonly toMs?: number | undefined
  /** It can no longer arrive. Default false. */
  readonly isPast?: boolean
  /** The `$batch` in which it was sent; undefined: it was posted by itself. */
  readonly execution?: Execution | undefined
}

/** Finds out what became of a record that may have been applied, and posts it again where it was not. */
type ResolveUnknown = (
  task: ReadBackTask,
  post: () => Promise<PostOutcome>,
  reason: UnknownReason,
  sent: Sent,
) => Promise<PostOutcome>

/** False for a partner whose records are never read back: nothing can be checked before it is posted. */
export const isReadBack = ({ readBackAfterMs }: { readonly readBackAfterMs: readonly number[] }): boolean =>
  readBackAfterMs.length > 0

/** Of older batches with records whose outcome is unknown too so many records are held, of the newest: as many as a batch may have. */
const LOST_RECORDS = 20_000
/** Posts of one record after the first, at most; a record that is lost each time is left to recovery. */
const MAX_POSTS = 2
/** After the last scheduled read, so many records of a `$batch` are read in the time of the last pause. */
const READS_IN_PAUSE = 10
const unclear: ReadBack = { kind: 'unclear' }

/**
 * Creates the answer to an ambiguous outcome (product contract 3): read the learner and event back, decide by
 * `readBackRules`, and confirm the record or post it again. An outcome that stays unclear is `unknown`; a newer mark is left alone.
 */
export function createResolveUnknown(
  context: WriteContext,
  { batch, partner, wasOnV2, spacingMs, leftMs, read, executionOf, clientWaits }: ReadBackOptions,
): ResolveUnknown {
  const { journal, echoes, clock, nowMs, onVisible } = context
  const readLost = createLostReading(context, partner)
  const allMs = spacingMs.reduce((sum, ms) => sum + ms, 0)
  /** One that takes the place of a batch on V2 counts from the time of that one. Undefined: the journal cannot be reached. */
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
          // What was written since its receipt is newer than a record that was never sent.
          toMs: how === 'never' ? receivedMs : wallOf(toMs),
        },
        byV2: wasOnV2 && how === 'before',
        executing,
      })
    const seen = decide([])
    if (executing) return seen
    if (seen.kind !== 'unclear' && seen.kind !== 'overwritten') return seen
    const lost = marks.length > 1 ? [...known.lostBefore, ...known.lost] : known.lost
    return lost.length === 0 ? seen : decide(await readLost(lost))
  }
  const pause = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve))
  const isUnderWay = ({ execution }: Sent): boolean =>
    execution !== undefined && clock.nowMs() < execution.untilMs()
  /** The pause before the read of this index: also after the schedule, as long as the `$batch` of the record is not over. */
  const pauseBefore = (index: number, { execution }: Sent, sureMs: number): number | undefined => {
    const spaceMs = spacingMs[Math.min(index, spacingMs.length - 1)]
    if (spaceMs === undefined) return undefined
    // A record that was sent long ago needs no pause; a read that failed does.
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
    /** No read was made yet after which the record cannot be applied any more. */
    let executing = isUnderWay(sent)
    for (let index = 0; executing || index < spacingMs.length; index += 1) {
      const pauseMs = pauseBefore(index, sent, sureMs())
      if (pauseMs === undefined || leftMs() <= pauseMs) break
      await pause(pauseMs)
      executing = isUnderWay(sent)
      // After one that was sent just now, all reads are made, however late they come.
      const isSure = index >= spacingMs.length - 1 || (sent.how !== 'now' && clock.nowMs() >= sureMs())
      const outcome = await read(query, task.record)
      // Another record of the batch may have been seen meanwhile.
      executing ||= isUnderWay(sent)
      const seen = outcome.kind === 'read' ? await conclude(task, outcome.json, sent, executing) : unclear
      if (seen.kind === 'overwritten' || (seen.kind === 'applied' && seen.certain)) return seen
      if (outcome.kind === 'refused') break
      if (isSure && seen.kind !== 'unclear') return seen
      if (executing && !clientWaits) break
    }
    return executing ? 'executing' : unclear
  }
  const readBack = async (task: ReadBackTask, sent: Sent): Promise<ReadBack | 'executing'> => {
    const lostMs = clock.nowMs()
    const { execution, isPast, toMs = lostMs } = sent
    const sureMs = (): number => (isPast === true ? lostMs : (execution?.untilMs() ?? toMs + allMs))
    const seen = await readUntilSure(task, sent, sureMs)
    if (seen === 'executing') return seen
    if (seen.kind !== 'applied') {
      // Newer records of its key wait for the end of this one: none may be sent while it can still arrive behind them, budget or not.
      if (sent.how !== 'never' && clock.nowMs() < sureMs()) await pause(sureMs() - clock.nowMs())
      return seen
    }
    if (seen.certain) execution?.appeared()
    if (seen.proof !== undefined) echoes.readBack(task.record, seen.proof)
    if (sent.how === 'now') onVisible(clock.nowMs() - lostMs)
    return seen
  }
  /** A record whose `$batch` is not over stays open, so that newer ones of its key wait; without a journal it is waited for here. */
  const leave = async ({ execution }: Sent, reason: UnknownReason): Promise<PostOutcome> => {
    const unknown = { kind: 'unknown', reason } as const
    if (execution === undefined) return unknown
    if (journal.durable) return { ...unknown, reason: 'stillExecuting', sinceMs: execution.sinceMs() }
    for (let ms = 1; ms > 0; ms = execution.untilMs() - clock.nowMs()) await pause(ms)
    return unknown
  }
  return async (task, post, first, before) => {
    let [reason, sent] = [first, before]
    for (let posts = 0; posts <= MAX_POSTS; posts += 1) {
      const seen = await readBack(task, sent)
      if (seen === 'executing') return leave(sent, reason)
      if (seen.kind === 'applied') return { kind: 'accepted', reply: seen.reply }
      if (seen.kind === 'overwritten' || seen.kind === 'superseded')
        return { kind: 'unknown', reason: seen.kind }
      if (seen.kind === 'unclear' || posts === MAX_POSTS) break
      sent =
        sent.how === 'never' ? { how: 'now', fromMs: clock.nowMs() } : { how: sent.how, fromMs: sent.fromMs }
      const outcome = await post()
      if (outcome.kind === 'refused' && outcome.error.status === 409) {
        // The service takes a second mark for a conflict: then the first one may be ours after all.
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

/**
 * Creates what reads older records whose outcome is unknown too, as they were posted; their batches are read once. Those of another partner,
 * whose rules are not known here, are left out.
 */
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
