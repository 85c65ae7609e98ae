import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { onTestFinished } from 'vitest'

import { Secret } from '../../../src/config/index.ts'

/** The journal section of a configuration. The file of the journal is removed at the end of the test. */
export interface JournalSection {
  readonly url: string
  readonly keys: readonly { id: string; key: Secret }[]
}

/** Returns the section for an SQLite journal in a new folder. With `encrypted`, the journal has a key and therefore stores credentials. */
export function journalFile({ encrypted = false } = {}): JournalSection {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-journal-'))
  onTestFinished(() => {
    rmSync(folder, { recursive: true })
  })
  const keys = encrypted ? [{ id: 'k1', key: new Secret('ab'.repeat(32)) }] : []
  return { url: `sqlite:${join(folder, 'journal.db')}`, keys }
}

/** Runs a query on the file of an SQLite journal, without the code of the journal. */
export function rowsOf({ url }: Pick<JournalSection, 'url'>, sql: string): Record<string, unknown>[] {
  const database = new DatabaseSync(url.slice('sqlite:'.length), { readOnly: true })
  const rows = database.prepare(sql).all()
  database.close()
  return rows
}
