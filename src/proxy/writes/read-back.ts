import { compareReadBack, toReadBackFilter } from '../../translate/index.ts'
import type { PostOutcome, ReadOutcome, UnknownReason, V3Record } from '../../v3/index.ts'
import type { PostOnce } from './send.ts'

/** What finding out about a lost write uses. */
export interface ReadBackParts {
  /** GETs AttendanceRecords with this raw query; takes its turn among the writes. */
  readonly read: (query: string) => Promise<ReadOutcome>
  readonly wait: (ms: number) => Promise<void>
  /** The time that is left for the request, ms. */
  readonly leftMs: () => number
  /**
   * Pauses before each look, ms. A write that nobody answered may still be on its way, and a read may be stale: only when the
   * last look, too, does not find it, it counts as not applied.
   */
  readonly spacingMs: readonly number[]
}

type Seen = ReturnType<typeof compareReadBack>

/** A record is posted so often again at the most; what is lost each time is left to the background. */
const MAX_POSTS = 2
const unclear: Seen = { kind: 'unclear' }

/**
 * Creates the answer to an ambiguous outcome (product contract 3): read the learner and event back from V3, compare with what
 * was posted, and confirm, or post again. What stays unclear stays `unknown`; a newer mark of somebody else is left alone.
 */
export function createReadBack(
  parts: ReadBackParts,
): (record: V3Record, post: PostOnce, reason: UnknownReason) => Promise<PostOutcome> {
  const look = async (record: V3Record): Promise<Seen> => {
    const query = `$filter=${encodeURIComponent(toReadBackFilter(record))}`
    let seen = unclear
    for (const pauseMs of parts.spacingMs) {
      if (parts.leftMs() <= pauseMs) return unclear
      await parts.wait(pauseMs)
      const outcome = await parts.read(query)
      seen = outcome.kind === 'read' ? compareReadBack(record, outcome.json) : unclear
      if (seen.kind === 'applied' || seen.kind === 'overwritten') return seen
      if (outcome.kind === 'refused') return unclear
    }
    return seen
  }
  return async (record, post, first) => {
    let reason = first
    for (let posts = 0; posts <= MAX_POSTS; posts += 1) {
      const seen = await look(record)
      if (seen.kind === 'applied') return { kind: 'accepted', reply: seen.reply }
      if (seen.kind === 'overwritten') return { kind: 'unknown', reason: 'overwritten' }
      if (seen.kind === 'unclear') break
      if (posts === MAX_POSTS) break
      const outcome = await new Promise<PostOutcome>(post)
      if (outcome.kind === 'refused' && outcome.error.status === 409) {
        // The service takes a second mark for a conflict: then the first one may be ours after all.
        const again = await look(record)
        return again.kind === 'applied' ? { kind: 'accepted', reply: again.reply } : outcome
      }
      if (outcome.kind !== 'unknown') return outcome
      reason = outcome.reason
    }
    return { kind: 'unknown', reason }
  }
}
