import { cp, mkdtemp, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { sql } from 'kysely'
import { afterAll, describe, expect, it, vi } from 'vitest'

import { openInspector, openJournal } from '../../src/journal/index.ts'
import { readMark, totalOf } from '../../src/journal/high-water.ts'
import { batchOf, beginNew, confirmed, statesOf } from './batches.ts'
import { createJournalEvents, makeFolder, openSqlite } from './open-sqlite.ts'
import { startInstance } from './start-instance.ts'

const timeouts = { timeoutMs: 2_000, leaseMs: 600 }

async function openUsed() {
  const file = `${await makeFolder()}/journal.db`
  const { heard, events } = createJournalEvents()
  const { journal, store } = await openSqlite(file, { ...timeouts, events })
  const batch = await beginNew(journal, batchOf(['a'], { name: 'one' }))
  await journal.settle(batch, [confirmed(0)])
  return { file, journal, store, heard, batch }
}

const refusal = (text: RegExp) => ({
  code: 'ADP_JOURNAL_DAMAGED',
  message: expect.stringMatching(text) as unknown,
})

describe('an SQLite journal whose file changes while it is in use', () => {
  it.each<[string, (file: string) => Promise<void>, RegExp, 'whole'?]>([
    ['was deleted', (file) => rm(file), /deleted or renamed/],
    ['was renamed', (file) => rename(file, `${file}.away`), /deleted or renamed/],
    ['was truncated to 0 bytes', (file) => truncate(file), /truncated|damaged/, 'whole'],
    [
      'was replaced by another file',
      async (file) => {
        await rename(file, `${file}.away`)
        await writeFile(file, '')
      },
      /another file replaced its file/,
    ],
    ['lost its write-ahead log', (file) => rm(`${file}-wal`), /log \(-wal\) was deleted/, 'whole'],
  ])(
    'refuses reads and writes, and reports the damage once, when its file %s',
    async (_what, change, text, after) => {
      const { file, journal, heard, batch } = await openUsed()
      await change(file)
      await expect(journal.begin(batchOf(['b']))).rejects.toMatchObject({ ...refusal(text), status: 503 })
      await expect(journal.begin(batchOf(['c']))).rejects.toMatchObject(refusal(text))
      await expect(journal.load(batch)).rejects.toMatchObject(refusal(text))
      expect(journal.isAvailable()).toBe(false)
      // The instance loses its lease, so that it posts no records of earlier batches either.
      await vi.waitFor(() => expect(journal.lease()).toBeUndefined(), 60_000)
      expect(heard).toEqual([expect.stringMatching(text)])
      await journal.close()
      // A clean stop writes the log to the database file, even if the log was deleted, so that no commit is lost.
      if (after === 'whole') {
        expect(await statesOf((await openSqlite(file)).journal, batch)).toEqual(['confirmed'])
        return
      }
      await expect(openJournal({ url: `sqlite:${file}` })).rejects.toMatchObject(
        refusal(/is damaged or was replaced: .*high-water file.*markbridge journal adopt/),
      )
    },
  )

  it('works again after the file was moved away and then back', async () => {
    const { file, journal, heard, batch } = await openUsed()
    await rename(file, `${file}.away`)
    await expect(journal.begin(batchOf(['b']))).rejects.toMatchObject({ code: 'ADP_JOURNAL_DAMAGED' })
    await rename(`${file}.away`, file)
    expect(await journal.begin(batchOf(['a'], { name: 'one' }))).toMatchObject({ kind: 'known', batch })
    expect(heard).toEqual([expect.stringMatching(/^failed/), 'recovered'])
  })

  it('reports that the file was deleted even if no request arrives', async () => {
    const { file, journal, heard } = await openUsed()
    await rm(file)
    await vi.waitFor(() => expect(heard).toHaveLength(1), 60_000)
    expect(journal.isAvailable()).toBe(false)
  })
})

describe('an instance that opens an SQLite journal', () => {
  /** Creates a journal in a process, and kills the process after three commits. Returns the folder of the journal. */
  async function leave(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'markbridge-left-'))
    const file = `${folder}/journal.db`
    const killed = await startInstance(`sqlite:${file}`)
    await killed.tell({ do: 'begin', keys: ['a'] })
    await cp(file, `${file}.old`)
    await cp(`${file}-wal`, `${file}.old-wal`)
    await killed.tell({ do: 'settle', batch: 1, positions: [0] })
    await killed.tell({ do: 'begin', keys: ['b'] })
    await killed.kill()
    return folder
  }
  /** The folder that the first test creates. It contains the journal of the killed process. */
  let left: string | undefined
  afterAll(async () => {
    if (left !== undefined) await rm(left, { recursive: true })
  })

  /** Returns a copy of the journal that the killed process left. */
  async function leftBehind(): Promise<string> {
    left ??= await leave()
    const folder = await makeFolder()
    await cp(left, folder, { recursive: true, preserveTimestamps: true })
    return `${folder}/journal.db`
  }

  it.each<[string, (file: string) => Promise<void>, RegExp]>([
    ['a journal whose file is missing', (file) => rm(file), /the database file is missing/],
    [
      'a journal that has only its high-water file left',
      (file) => Promise.all([rm(file), rm(`${file}-wal`)]).then(),
      /the database file is missing/,
    ],
    ['a journal whose file is empty', (file) => truncate(file), /the database file is empty/],
    [
      'an old copy of a journal',
      async (file) => {
        await rename(`${file}.old`, file)
        await rename(`${file}.old-wal`, `${file}-wal`)
        await rm(`${file}-shm`)
      },
      /old copy: it contains 1 commit\(s\), and .* counts 3/,
    ],
    [
      'a journal that lost its write-ahead log',
      (file) => rm(`${file}-wal`),
      /it is empty|old copy|no database/,
    ],
    [
      'a journal that lost the end of its write-ahead log',
      async (file) => truncate(`${file}-wal`, (await stat(`${file}-wal`)).size - 100),
      /old copy: it contains 2 commit\(s\), and .* counts 3/,
    ],
    [
      'a journal with a flipped bit in its write-ahead log',
      async (file) => {
        const log = await readFile(`${file}-wal`)
        log[log.length - 200] = (log.at(-200) ?? 0) ^ 1
        await writeFile(`${file}-wal`, log)
      },
      /old copy: it contains 2 commit\(s\), and .* counts 3/,
    ],
    [
      'a journal whose high-water file is missing',
      (file) => rm(`${file}.mark`),
      /high-water file .* is missing/,
    ],
    [
      'a journal whose high-water file is unreadable',
      (file) => writeFile(`${file}.mark`, 'x'),
      /high-water file .* cannot be read/,
    ],
    [
      'a journal with the high-water file of another journal',
      async (file) => {
        const { file: other } = await openUsed()
        await cp(`${other}.mark`, `${file}.mark`)
      },
      /differs from the identity in its high-water file/,
    ],
  ])('fails repeatedly, also for an inspector, with %s', async (_what, change, text) => {
    const file = await leftBehind()
    await change(file)
    for (let time = 0; time < 2; time += 1) {
      await expect(openJournal({ url: `sqlite:${file}` })).rejects.toMatchObject(refusal(text))
      await expect(openInspector(`sqlite:${file}`)).rejects.toMatchObject(refusal(text))
    }
  })

  it('fails with a journal that has one flipped bit in an indexed value', async () => {
    const file = `${await makeFolder()}/journal.db`
    const first = await openSqlite(file)
    await beginNew(first.journal, batchOf(['a'], { name: 'one', receivedMs: Date.now() }))
    const { rows } = await sql<{ ids: string; key: string }>`
      select ids, key from journal_batches join journal_records on batch = id`.execute(first.store.db)
    await first.journal.close()
    const whole = await readFile(file)
    // Each value occurs once in the table and once in an index.
    const places = rows
      .flatMap(({ ids, key }) => [ids, key])
      .flatMap((text) => {
        const found: number[] = []
        for (let at = whole.indexOf(text); at >= 0; at = whole.indexOf(text, at + 1)) found.push(at)
        return found
      })
    expect(places).toHaveLength(4)
    for (const place of places) {
      const changed = Buffer.from(whole)
      changed[place] = (whole[place] ?? 0) ^ 1
      await writeFile(file, changed)
      await expect(openSqlite(file)).rejects.toMatchObject(
        refusal(/an index of its file does not match its table/),
      )
    }
  })

  it('succeeds after kill -9 even if the high-water file counts fewer commits than the database', async () => {
    const file = await leftBehind()
    const left = readMark(`${file}.mark`)
    expect(typeof left === 'string' ? left : totalOf(left.commits)).toBe(3)
    // Restores an older high-water file below, because a power cut may lose the last writes of the file.
    const mark = await readFile(`${file}.mark`)
    const { journal } = await openSqlite(file)
    await beginNew(journal, batchOf(['c']))
    await journal.close()
    await writeFile(`${file}.mark`, mark)
    const again = await openSqlite(file)
    expect(await statesOf(again.journal, 1)).toEqual(['confirmed'])
    expect((await stat(`${file}.mark`)).mode & 0o777).toBe(0o600)
  })
})
