import { it } from 'vitest'

import {
  type DurableJournal,
  type JournalInspector,
  openInspector,
  openJournal,
} from '../../../src/journal/index.ts'
import type { JournalOptions } from '../../../src/journal/sql-journal.ts'

/** Opens journals for one test: all on the same new database. */
interface Opener {
  open(options?: Partial<JournalOptions>): Promise<DurableJournal>
  inspect(): Promise<JournalInspector>
}

/** Runs a test on a database of its own, and closes what it leaves open. */
type WithOpener = (work: (opener: Opener) => Promise<void>) => Promise<void>

/** A kind of journal that is held against the contract. */
export interface Subject {
  readonly name: string
  /** How many random sequences of calls it answers. */
  readonly runs: number
  readonly withOpener: WithOpener
  /** A test of one journal that is open. */
  readonly promise: (what: string, work: (journal: DurableJournal, opener: Opener) => Promise<void>) => void
}

/** Makes a subject of journals at addresses that `newUrl` gives. */
export function toSubject(name: string, runs: number, newUrl: () => Promise<string>): Subject {
  const withOpener: WithOpener = async (work) => {
    const url = await newUrl()
    const opened: { close(): Promise<void> }[] = []
    const keep = <Opened extends DurableJournal | JournalInspector>(one: Opened): Opened => {
      opened.push(one)
      return one
    }
    try {
      await work({
        open: async (options = {}) => keep(await openJournal({ url, ...options })),
        inspect: async () => keep(await openInspector(url)),
      })
    } finally {
      for (const one of opened) await one.close()
    }
  }
  return {
    name,
    runs,
    withOpener,
    promise: (what, work) => {
      it(what, () => withOpener(async (opener) => work(await opener.open(), opener)))
    },
  }
}
