import { damagedJournal } from '../store/damage.ts'
import type { HighWaterMark, MarkFile } from './mark-file.ts'

/** How far this process knows its journal to have come. */
export interface HighWater {
  /** The commits that every later transaction must find, without its own. To be read before the transaction begins. */
  known(): number
  /**
   * Checks what a transaction found when it counted itself: the same journal, with all commits that were known before it began.
   * Error: `ADP_JOURNAL_DAMAGED`.
   */
  check(found: { readonly identity: unknown; readonly commits: unknown } | undefined, known: number): number
  /** A transaction that was the commit of this number is durable. */
  reached(commits: number): void
  close(): void
}

/** Creates the memory of a journal that was opened with `start`; `file` remembers it beyond this process. */
export function createHighWater(start: HighWaterMark, file: MarkFile | undefined): HighWater {
  let known = start.commits
  return {
    known: () => known,
    check: (found, before) => {
      if (found?.identity !== start.identity) {
        throw damagedJournal('another journal has taken its place while it was in use')
      }
      const commits = Number(found.commits)
      if (commits <= before) {
        throw damagedJournal(`it went back by ${before + 1 - commits} commit(s) while it was in use`)
      }
      return commits
    },
    reached: (commits) => {
      if (commits <= known) return
      known = commits
      try {
        file?.write({ identity: start.identity, commits })
      } catch {
        // The mark lags then, as after a power cut; the next commit writes it again.
      }
    },
    close: () => file?.close(),
  }
}
