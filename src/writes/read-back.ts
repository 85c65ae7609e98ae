import { compareReadBack, type ReadBackKnowledge, toReadBackFilter } from '../translate/index.ts'
import type { PostOutcome, ReadOutcome, UnknownReason, V3Record, V3Reply } from '../v3/index.ts'
import type { PostOnce, SentBefore } from './post-records.ts'

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
  /** The knowledge of V3 for one comparison; `isOld`: of a record that was sent before this run. Default none. */
  readonly knowledge?: (isOld: boolean) => ReadBackKnowledge
  /** Called with a mark that proves how V3 stores the values of this record. */
  readonly onProof?: (record: V3Record, shown: Pick<V3Reply, 'RecordedOn' | 'Qualifier'>) => void
  /** The time from the loss of an answer to the first read that shows the mark, ms. */
  readonly onVisible?: (afterMs: number) => void
}

type Seen = ReturnType<typeof compareReadBack>

/** False for a partner whose records are never read back: nothing can be checked before it is posted. */
export const isReadBack = ({ readBackAfterMs }: { readonly readBackAfterMs: readonly number[] }): boolean =>
  readBackAfterMs.length > 0

/** Posts of one record after the first, at most; a record that is lost each time is left to recovery. */
const MAX_POSTS = 2
const unclear: Seen = { kind: 'unclear' }

/**
 * Creates the answer to an ambiguous outcome (product contract 3): read the learner and event back from V3, compare them with
 * the posted record, and confirm it or post it again. An outcome that stays unclear is `unknown`; a newer mark of another client
 * is left alone. `before`: undefined for a record that this run has sent.
 */
export function createReadBack(
  parts: ReadBackParts,
): (record: V3Record, post: PostOnce, reason: UnknownReason, before?: SentBefore) => Promise<PostOutcome> {
  const allMs = parts.spacingMs.reduce((sum, ms) => sum + ms, 0)
  const readBack = async (record: V3Record, isOld: boolean, sentMs = parts.nowMs()): Promise<Seen> => {
    const query = `$filter=${encodeURIComponent(toReadBackFilter(record))}`
    const sureMs = sentMs + allMs
    let seen = unclear
    for (const [index, spaceMs] of parts.spacingMs.entries()) {
      // A record that was sent long ago needs no pause; a read that failed does.
      const pauseMs = index === 0 ? Math.min(spaceMs, Math.max(0, sureMs - parts.nowMs())) : spaceMs
      if (parts.leftMs() <= pauseMs) return unclear
      await parts.wait(pauseMs)
      const isSure = parts.nowMs() >= sureMs
      const outcome = await parts.read(query)
      seen =
        outcome.kind === 'read' ? compareReadBack(record, outcome.json, parts.knowledge?.(isOld)) : unclear
      if (seen.kind === 'overwritten' || (seen.kind === 'applied' && seen.certain)) return seen
      if (outcome.kind === 'refused') return unclear
      if (isSure && seen.kind !== 'unclear') return seen
    }
    return seen
  }
  const readMark = async (record: V3Record, isOld: boolean, sentMs?: number): Promise<Seen> => {
    const lostMs = parts.nowMs()
    const seen = await readBack(record, isOld, sentMs)
    if (seen.kind === 'applied') {
      if (seen.proof !== undefined) parts.onProof?.(record, seen.proof)
      if (sentMs === undefined) parts.onVisible?.(parts.nowMs() - lostMs)
    }
    return seen
  }
  return async (record, post, first, before) => {
    const isOld = before !== undefined
    let reason = first
    for (let posts = 0; posts <= MAX_POSTS; posts += 1) {
      const seen = await readMark(record, isOld, posts === 0 ? before?.sentMs : undefined)
      if (seen.kind === 'applied') return { kind: 'accepted', reply: seen.reply }
      if (seen.kind === 'overwritten') return { kind: 'unknown', reason: 'overwritten' }
      if (seen.kind === 'unclear') break
      if (posts === MAX_POSTS) break
      const outcome = await new Promise<PostOutcome>(post)
      if (outcome.kind === 'refused' && outcome.error.status === 409) {
        // The service takes a second mark for a conflict: then the first one may be ours after all.
        const again = await readMark(record, isOld)
        return again.kind === 'applied' ? { kind: 'accepted', reply: again.reply } : outcome
      }
      if (outcome.kind !== 'unknown') return outcome
      reason = outcome.reason
    }
    return { kind: 'unknown', reason }
  }
}
