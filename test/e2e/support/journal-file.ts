import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { onTestFinished } from 'vitest'

import { Secret } from '../../../src/config/index.ts'

/** The journal section of a configuration: a file of its own, removed at the end of the test. */
export interface JournalSection {
  readonly url: string
  readonly keys: readonly { id: string; key: Secret }[]
}

/** A SQLite journal in a new folder; with `encrypted` it has a key, and so it keeps credentials. */
export function journalFile({ encrypted = false } = {}): JournalSection {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-journal-'))
  onTestFinished(() => {
    rmSync(folder, { recursive: true })
  })
  const keys = encrypted ? [{ id: 'k1', key: new Secret('ab'.repeat(32)) }] : []
  return { url: `sqlite:${join(folder, 'journal.db')}`, keys }
}

/** True where another process holds the file of an SQLite journal for seconds; false for every other journal. */
export function isHeld(url: string): boolean {
  if (!url.startsWith('sqlite:')) return false
  const database = new DatabaseSync(url.slice('sqlite:'.length), { timeout: 3_000 })
  try {
    database.exec('BEGIN IMMEDIATE')
    database.exec('ROLLBACK')
    return false
  } catch {
    return true
  } finally {
    database.close()
  }
}
