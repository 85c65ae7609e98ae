import { AdapterError } from '../errors.ts'
import type { KnownMarks } from '../journal/index.ts'
import {
  decideReadBack,
  type EchoProfile,
  parseTime,
  type ReadBack,
  readMarks,
  toReadBackFilter,
} from '../translate/index.ts'
import type { PostOutcome, ReadOutcome, V3Record, V3Reply } from '../v3/index.ts'
import type { ReadTask, ResolveUnknown, Sent } from './post-records.ts'

/** The parts that a read-back works with. */
export interface ReadBackParts {
  /** GETs AttendanceRecords with this raw query, under the rate limit of writes. */
  readonly read: (query: string) => Promise<ReadOutcome>
  readonly wait: (ms: number) => Promise<void>
  /** The clock, ms. */
  readonly nowMs: () => number
  /** The time that is left for the request, ms. */
  readonly leftMs: () => number
  /**
   * Pauses before each read, ms. An unanswered write may still be on its way, and a read may be stale: a write counts as not
   * applied only after the last scheduled read has not found it.
   */
  readonly spacingMs: readonly number[]
  /** What the service makes of values, as far as it is known. */
  readonly profile: () => EchoProfile
  /** What the journal knows of the learner and event of the record at this position. */
  readonly known: (record: V3Record, position: number) => Promise<KnownMarks>
  /** Milliseconds since the epoch. */
  readonly wallMs: () => number
  /** V2 may have applied the records that were sent before this run. */
  readonly byV2: boolean
  /** Called with a mark that proves how V3 stores the values of this record. */
  readonly onProof?: (record: V3Record, shown: Pick<V3Reply, 'RecordedOn' | 'Qualifier'>) => void
  /** The time from the loss of an answer to the first read that shows the mark, ms. */
  readonly onVisible?: (afterMs: number) => void
}

/** False for a partner whose records are never read back: nothing can be checked before it is posted. */
export const isReadBack = ({ readBackAfterMs }: { readonly readBackAfterMs: readonly number[] }): boolean =>
  readBackAfterMs.length > 0

/** Posts of one record after the first, at most; a record that is lost each time is left to recovery. */
const MAX_POSTS = 2
const unclear: ReadBack = { kind: 'unclear' }

/**
 * Creates the answer to an ambiguous outcome (product contract 3): read the learner and event back from V3, decide by
 * `readBackRules`, and confirm the record or post it again. An outcome that stays unclear is `unknown`; a newer mark is left alone.
 */
export function createReadBack(parts: ReadBackParts): ResolveUnknown {
  const allMs = parts.spacingMs.reduce((sum, ms) => sum + ms, 0)
  const decide = async ({ record, position }: ReadTask, answer: unknown, sent: Sent): Promise<ReadBack> => {
    const marks = readMarks(record, answer)
    if (marks === undefined) return unclear
    const known = await parts.known(record, position).catch(unlessOpen)
    if (known === undefined) return unclear
    const { how, fromMs, toMs = parts.nowMs() } = sent
    const wallOf = (ms: number): number => parts.wallMs() - (parts.nowMs() - ms)
    const receivedMs = parseTime(record.RecordedOn)
    return decideReadBack(record, marks, {
      ...known,
      profile: parts.profile(),
      sent: {
        fromMs: fromMs === undefined ? receivedMs : wallOf(fromMs),
        // What was written since its receipt is newer than a record that was never sent.
        toMs: how === 'never' ? receivedMs : wallOf(toMs),
      },
      byV2: parts.byV2 && how === 'before',
    })
  }
  const readBack = async (task: ReadTask, sent: Sent): Promise<ReadBack> => {
    const query = `$filter=${encodeURIComponent(toReadBackFilter(task.record))}`
    const sureMs = (sent.toMs ?? parts.nowMs()) + allMs
    let seen = unclear
    for (const [index, spaceMs] of parts.spacingMs.entries()) {
      // A record that was sent long ago needs no pause; a read that failed does.
      const pauseMs = index === 0 ? Math.min(spaceMs, Math.max(0, sureMs - parts.nowMs())) : spaceMs
      if (parts.leftMs() <= pauseMs) return unclear
      await parts.wait(pauseMs)
      const isSure = parts.nowMs() >= sureMs
      const outcome = await parts.read(query)
      seen = outcome.kind === 'read' ? await decide(task, outcome.json, sent) : unclear
      if (seen.kind === 'overwritten' || (seen.kind === 'applied' && seen.certain)) return seen
      if (outcome.kind === 'refused') return unclear
      if (isSure && seen.kind !== 'unclear') return seen
    }
    return seen
  }
  const readMark = async (task: ReadTask, sent: Sent): Promise<ReadBack> => {
    const lostMs = parts.nowMs()
    const seen = await readBack(task, sent)
    if (seen.kind === 'applied') {
      if (seen.proof !== undefined) parts.onProof?.(task.record, seen.proof)
      if (sent.how === 'now') parts.onVisible?.(parts.nowMs() - lostMs)
    }
    return seen
  }
  return async (task, post, first, before) => {
    let [reason, sent] = [first, before]
    for (let posts = 0; posts <= MAX_POSTS; posts += 1) {
      const seen = await readMark(task, sent)
      if (seen.kind === 'applied') return { kind: 'accepted', reply: seen.reply }
      if (seen.kind === 'overwritten' || seen.kind === 'superseded')
        return { kind: 'unknown', reason: seen.kind }
      if (seen.kind === 'unclear') break
      if (posts === MAX_POSTS) break
      sent =
        sent.how === 'never' ? { how: 'now', fromMs: parts.nowMs() } : { how: sent.how, fromMs: sent.fromMs }
      const outcome = await new Promise<PostOutcome>(post)
      if (outcome.kind === 'refused' && outcome.error.status === 409) {
        // The service takes a second mark for a conflict: then the first one may be ours after all.
        const again = await readMark(task, sent)
        return again.kind === 'applied' ? { kind: 'accepted', reply: again.reply } : outcome
      }
      if (outcome.kind !== 'unknown') return outcome
      reason = outcome.reason
    }
    return { kind: 'unknown', reason }
  }
}

/** The journal cannot be reached: then nothing can be decided. */
function unlessOpen(cause: unknown): undefined {
  if (cause instanceof AdapterError) return undefined
  throw cause
}
