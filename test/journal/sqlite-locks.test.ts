import { spawnSync } from 'node:child_process'
import { stat, symlink } from 'node:fs/promises'

import { describe, expect, it } from 'vitest'

import { openConsoleDatabase } from '../../src/console/data/open-database.ts'
import { type BeginResult, openInspector } from '../../src/journal/index.ts'
import { openRolloutStore } from '../../src/rollout/store/rollout-store.ts'
import { makeFolder, openSqlite } from './open-sqlite.ts'
import { batchOf } from './batches.ts'

/** Runs SQL on the file in another process. Returns its error, or an empty text. */
function runElsewhere(file: string, statements: string): string {
  const program = `const { DatabaseSync } = require('node:sqlite')
    const database = new DatabaseSync(process.argv[1]); database.exec(process.argv[2]); database.close()`
  return spawnSync(process.execPath, ['-e', program, file, statements], { encoding: 'utf8' }).stderr
}

describe('a SQLite journal in use', () => {
  it.each<[name: string, use: (file: string, commit: (key: string) => Promise<unknown>) => Promise<void>]>([
    [
      'an inspector was opened and closed',
      async (file) => (await openInspector(`sqlite:${file}`, undefined)).close(),
    ],
    [
      'the store of the stages was opened and closed',
      async (file) => (await openRolloutStore({ url: `sqlite:${file}` })).close(),
    ],
    [
      'the tables of the console were opened and closed',
      async (file) => (await openConsoleDatabase(`sqlite:${file}`)).close(),
    ],
    [
      'another process shortened the file with a vacuum',
      async (file, commit) => {
        expect(runElsewhere(file, 'create table filler as select randomblob(100000) as b; pragma wal_checkpoint(truncate)')).toBe('')
        await commit('grown')
        expect(runElsewhere(file, 'drop table filler; vacuum; pragma wal_checkpoint(truncate)')).toBe('')
      },
    ],
  ])('keeps its locks in this process after %s', async (_name, use) => {
    const file = `${await makeFolder()}/journal.db`
    const { journal } = await openSqlite(file)
    const commit = (key: string): Promise<BeginResult> => journal.begin(batchOf([key]))
    await commit('before')
    await use(file, commit)
    // The journal looks at its file before it commits.
    await commit('after')
    // A process that can lock the whole file would take itself for the only user, and delete the log (-wal) when it closes the file.
    expect(runElsewhere(file, 'pragma locking_mode = exclusive; select * from journal_batches')).toContain('database is locked')
    expect(await commit('last')).toMatchObject({ kind: 'new' })
  }) // prettier-ignore
})

it.skipIf(process.platform === 'win32')(
  'a new SQLite journal can be read only by its owner, even if its path is a symbolic link to a missing file',
  async () => {
    const folder = await makeFolder()
    await symlink(`${folder}/target.db`, `${folder}/journal.db`)
    await openSqlite(`${folder}/journal.db`)
    expect((await stat(`${folder}/target.db`)).mode & 0o777).toBe(0o600)
  },
)
