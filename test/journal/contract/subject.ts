import { it } from 'vitest'

import {
  type DurableJournal,
  type JournalInspector,
  openInspector,
  openJournal,
} from '../../../src/journal/index.ts'
import type { JournalOptions } from '../../../src/journal/sql-journal.ts'

/** Opens journals and inspectors for one test, all on the same new database. */
interface Opener {
  open(options?: Partial<JournalOptions>): Promise<DurableJournal>
  inspect(): Promise<JournalInspector>
}

/** Runs a test on a new database, and closes the journals and inspectors that the test leaves open. */
type WithOpener = (work: (opener: Opener) => Promise<void>) => Promise<void>

/** A kind of journal that is tested against the contract. */
export interface Subject {
  readonly name: string
  /** The number of random sequences of calls. */
  readonly runs: number
  readonly withOpener: WithOpener
  /** Defines a test that receives an open journal. */
  readonly test: (what: string, work: (journal: DurableJournal, opener: Opener) => Promise<void>) => void
}

/** Creates a subject whose journals have URLs from `newUrl`. */
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
    test: (what, work) => {
      it(what, () => withOpener(async (opener) => work(await opener.open(), opener)))
    },
  }
}
