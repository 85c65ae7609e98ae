import { it } from 'vitest'

import type { Journal, JournalInspector } from '../../../src/journal/index.ts'
import type { JournalOptions } from '../../../src/journal/sql-journal.ts'

/** Opens journals for one test: all on the same new database. */
export interface Opener {
  open(options?: Partial<JournalOptions>): Promise<Journal>
  inspect(): Promise<JournalInspector>
}

/** Runs a test on a database of its own, and closes what it leaves open. */
export type WithOpener = (work: (opener: Opener) => Promise<void>) => Promise<void>

/** A kind of journal that is held against the contract. */
export interface Subject {
  readonly name: string
  /** How many random sequences of calls it answers. */
  readonly runs: number
  readonly withOpener: WithOpener
  /** A test of one journal that is open. */
  readonly promise: (what: string, work: (journal: Journal, opener: Opener) => Promise<void>) => void
}

/** Makes a subject of a name and of what opens its journals. */
export function toSubject(name: string, runs: number, withOpener: WithOpener): Subject {
  return {
    name,
    runs,
    withOpener,
    promise: (what, work) => {
      it(what, () => withOpener(async (opener) => work(await opener.open(), opener)))
    },
  }
}
