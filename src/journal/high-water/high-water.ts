import { damagedJournal } from '../store/damage.ts'
import { type CommitCounts, missingOf, withOneMore } from './commit-counts.ts'
import type { HighWaterMark, MarkFile } from './mark-file.ts'

/** How far this process knows its journal to have come. */
export interface HighWater {
  /** The commits that every later transaction must find, without its own. To be read before the transaction begins. */
  known(): CommitCounts
  /**
   * Checks what a transaction found when it counted itself in a slot: the same journal, with all commits that were known before it began.
   * Gives the counts with its own. Error: `ADP_JOURNAL_DAMAGED`.
   */
  check(
    found: { readonly identity: unknown; readonly commits: CommitCounts } | undefined,
    known: CommitCounts,
    slot: number,
  ): CommitCounts
  /** A transaction with these counts is durable. */
  reached(commits: CommitCounts): void
  close(): void
}

/** Creates the memory of a journal that was opened with `start`; `file` remembers it beyond this process. */
export function createHighWater(start: HighWaterMark, file: MarkFile | undefined): HighWater {
  let known = start.commits
  return {
    known: () => known,
    check: (found, before, slot) => {
      if (found?.identity !== start.identity) {
        throw damagedJournal('another journal has taken its place while it was in use')
      }
      const missing = missingOf(found.commits, before)
      if (missing > 0) throw damagedJournal(`it went back by ${missing} commit(s) while it was in use`)
      return withOneMore(found.commits, slot)
    },
    reached: (commits) => {
      // Two may be durable in another order than they counted in.
      const slots = [...new Set([...known.keys(), ...commits.keys()])]
      known = new Map(
        slots.map((slot) => [slot, Math.max(known.get(slot) ?? 0, commits.get(slot) ?? 0)] as const),
      )
      try {
        file?.write({ identity: start.identity, commits: known })
      } catch {
        // The mark lags then, as after a power cut; the next commit writes it again.
      }
    },
    close: () => file?.close(),
  }
}
