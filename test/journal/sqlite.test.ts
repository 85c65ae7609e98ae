import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { openInspector, openJournal } from '../../src/journal/index.ts'
import { runs } from '../support/long-run.ts'
import { describeJournal } from './contract.ts'
import type { Opener } from './contract/subject.ts'

describeJournal('SQLite', runs(10, 200), async (work) => {
  const folder = await mkdtemp(join(tmpdir(), 'markbridge-journal-'))
  const opened: { close(): Promise<void> }[] = []
  const opener: Opener = {
    open: async (options = {}) => {
      const journal = await openJournal({ url: `sqlite:${join(folder, 'journal.db')}`, ...options })
      opened.push(journal)
      return journal
    },
    inspect: async () => {
      const inspector = await openInspector(`sqlite:${join(folder, 'journal.db')}`)
      opened.push(inspector)
      return inspector
    },
  }
  try {
    await work(opener)
  } finally {
    for (const journal of opened) await journal.close()
    await rm(folder, { recursive: true })
  }
})
