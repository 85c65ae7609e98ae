import { readFile, rm, stat, writeFile } from 'node:fs/promises'

import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'

import {
  adoptJournal,
  examineJournal,
  type Journal,
  openInspector,
  openJournal,
} from '../../src/journal/index.ts'
import { readMark, slotOf, totalOf } from '../../src/journal/high-water.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../support/start-postgres.ts'
import { batchOf, beginNew, confirmed, statesOf } from './batches.ts'
import { makeFolder } from './open-sqlite.ts'

const nameOf = (url: string): string => new URL(url).pathname.slice(1)
const refusal = (text: RegExp) => ({
  code: 'ADP_JOURNAL_DAMAGED',
  message: expect.stringMatching(text) as unknown,
})
const DAY_MS = 86_400_000

describe.skipIf(missingPostgres() !== undefined)(
  'a PostgreSQL journal that was restored from an old dump',
  () => {
    let postgres: TestPostgres
    beforeAll(async () => {
      postgres = await startPostgres()
    })
    afterAll(() => postgres.close())

    /** Runs statements on the server outside the database of the journal. */
    const administer = async (url: string, ...texts: string[]): Promise<void> => {
      const server = new URL(url)
      server.pathname = '/postgres'
      const client = new Client({ connectionString: server.href })
      await client.connect()
      try {
        for (const text of texts) await client.query(text)
      } finally {
        await client.end()
      }
    }
    /** Copies the database as it is now, in place of a dump. */
    const dump = (url: string): Promise<void> =>
      administer(url, `create database ${nameOf(url)}_dump template ${nameOf(url)}`)
    const restore = (url: string): Promise<void> =>
      administer(
        url,
        `drop database ${nameOf(url)} with (force)`,
        `alter database ${nameOf(url)}_dump rename to ${nameOf(url)}`,
      )
    const open = async (url: string, highWaterFile?: string): Promise<Journal> => {
      const journal = await openJournal({
        url,
        timeoutMs: 5_000,
        ...(highWaterFile === undefined ? {} : { highWaterFile }),
      })
      onTestFinished(() => journal.close())
      return journal
    }
    const write = async (journal: Journal, name: string): Promise<number> => {
      const batch = await beginNew(journal, batchOf([name], { name }))
      await journal.settle(batch, [confirmed(0)])
      return batch
    }
    /** Opens a journal that was dumped after its first batch and has stored a second batch since. */
    const openDumped = async (highWaterFile?: string) => {
      const url = await postgres.createDatabase()
      const first = await open(url, highWaterFile)
      await write(first, 'one')
      await first.close()
      await dump(url)
      const journal = await open(url, highWaterFile)
      await write(journal, 'two')
      return { url, journal }
    }

    it('refuses all writes of a process that was running during the restore, until the journal is adopted', async () => {
      const { url, journal } = await openDumped()
      await restore(url)
      await expect(journal.begin(batchOf(['three']))).rejects.toMatchObject({
        ...refusal(/it lost \d+ commit\(s\) while it was in use/),
        status: 503,
      })
      expect(journal.isAvailable()).toBe(false)
      await journal.close()
      // No process and no high-water file has counted the lost commit. Only the id of the database in PostgreSQL reveals the restore.
      await expect(openJournal({ url })).rejects.toMatchObject(refusal(/restored from a dump/))
      const condition = await examineJournal({ url })
      expect(condition).toMatchObject({ damage: expect.stringMatching(/dump/) as unknown, usable: true })
      await adoptJournal({ url }, condition, DAY_MS, Date.now())
      const next = await open(url)
      expect(next.readBackUntilMs).toBeGreaterThan(Date.now())
      expect(await next.begin(batchOf(['two'], { name: 'two' }))).toMatchObject({ kind: 'new' })
    })

    it('is refused at the next start even if the high-water file was restored as well', async () => {
      const highWaterFile = `${await makeFolder()}/journal.mark`
      const url = await postgres.createDatabase()
      const first = await open(url, highWaterFile)
      await write(first, 'one')
      await first.close()
      await dump(url)
      const mark = await readFile(highWaterFile)
      const journal = await open(url, highWaterFile)
      await write(journal, 'two')
      await journal.close()
      await restore(url)
      await writeFile(highWaterFile, mark)
      await expect(openJournal({ url, highWaterFile })).rejects.toMatchObject(refusal(/restored from a dump/))
    })

    it.each(['commit count in memory', 'commit count in the high-water file'] as const)(
      'is refused because of the %s if commits of one instance are lost and another instance has written since',
      async (witness) => {
        const highWaterFile = `${await makeFolder()}/journal.mark`
        const url = await postgres.createDatabase()
        const [own, other] = [await open(url, highWaterFile), await open(url)]
        await write(other, 'one')
        await write(own, 'two')
        const slot = slotOf(own.lease() ?? 0)
        if (witness === 'commit count in the high-water file') await own.close()
        // Simulates a failover without a synchronous standby, which loses the last commits.
        const client = new Client({ connectionString: url })
        await client.connect()
        await client.query(`update journal_commits set commits = commits - 1 where slot = ${slot}`)
        await client.end()
        for (let n = 0; n < 5; n += 1) await other.begin(batchOf([`more ${n}`]))
        const found =
          witness === 'commit count in memory'
            ? own.begin(batchOf(['three']))
            : openJournal({ url, highWaterFile }).then(() => 'opened')
        await expect(found).rejects.toMatchObject(
          refusal(witness === 'commit count in memory' ? /lost 1 commit/ : /so 1 are missing/),
        )
      },
    )

    it('is refused at the next start because of the high-water file, and is usable after adoption', async () => {
      const highWaterFile = `${await makeFolder()}/journal.mark`
      const { url, journal } = await openDumped(highWaterFile)
      await journal.close()
      const mark = readMark(highWaterFile)
      expect(mark).toMatchObject({ commits: expect.any(Map) as unknown })
      await restore(url)
      const text =
        /an old copy: it contains \d+ commit\(s\), and its high-water file .*journal\.mark counts \d+ commit/
      for (let time = 0; time < 2; time += 1)
        await expect(openJournal({ url, highWaterFile })).rejects.toMatchObject(refusal(text))
      expect(readMark(highWaterFile)).toEqual(mark)
      const condition = await examineJournal({ url, highWaterFile })
      expect(condition).toMatchObject({
        damage: expect.stringMatching(text) as unknown,
        usable: true,
        batches: 1,
      })

      const nowMs = Date.now()
      const adopted = await adoptJournal({ url, highWaterFile }, condition, DAY_MS, nowMs)
      expect(adopted).toEqual({ readBackUntilMs: nowMs + DAY_MS, setAside: [] })
      const next = await open(url, highWaterFile)
      // The time may be later, because the journal also waits until its age has grown by a day.
      expect(next.readBackUntilMs).toBeGreaterThanOrEqual(nowMs + DAY_MS)
      expect(await statesOf(next, 1)).toEqual(['confirmed'])
      expect(await next.begin(batchOf(['two'], { name: 'two' }))).toMatchObject({ kind: 'new' })
      expect((await examineJournal({ url, highWaterFile })).damage).toBeUndefined()
    })

    it('is repaired by adoption if its data about encryption keys is damaged, but still refuses other keys', async () => {
      const url = await postgres.createDatabase()
      const keys = [{ id: 'k1', key: Buffer.alloc(32, 1) }]
      const journal = await openJournal({ url, keys })
      await write(journal, 'one')
      await journal.close()
      const client = new Client({ connectionString: url })
      await client.connect()
      await client.query(`update journal_keys set proof = 'flipped'`)
      await client.query(`update journal_meta set value = 'j' || substr(value, 2) where name = 'secret'`)
      await client.end()
      const others = [{ id: 'k1', key: Buffer.alloc(32, 2) }]
      const foreign = {
        code: 'ADP_CONFIGURATION',
        message: expect.stringContaining('different key') as unknown,
      }
      await expect(examineJournal({ url, keys: others })).rejects.toMatchObject(foreign)
      await expect(openJournal({ url, keys: others })).rejects.toMatchObject(foreign)
      await expect(openJournal({ url, keys })).rejects.toMatchObject(
        refusal(/the proof of key k1 was changed.*the secret of the journal/),
      )
      // Without keys, the examination does not check the data about the keys.
      expect((await examineJournal({ url })).damage).toBeUndefined()
      await adoptJournal({ url }, { usable: true }, DAY_MS, Date.now())
      await expect(openJournal({ url, keys })).rejects.toMatchObject(
        refusal(/the proof of key k1.*the secret of the journal/),
      )
      const condition = await examineJournal({ url, keys })
      await adoptJournal({ url, keys }, condition, DAY_MS, Date.now())
      const next = await openJournal({ url, keys })
      onTestFinished(() => next.close())
      expect((await next.load(1))?.payload).toEqual(Buffer.from('payload of one'))
    })

    it('is refused with a message of its own if the database is empty or holds another journal', async () => {
      const highWaterFile = `${await makeFolder()}/journal.mark`
      const { url, journal } = await openDumped(highWaterFile)
      await journal.close()
      const empty = await postgres.createDatabase()
      await expect(openJournal({ url: empty, highWaterFile })).rejects.toMatchObject(
        refusal(/it is empty, and its high-water file/),
      )
      const other = await postgres.createDatabase()
      await (await open(other)).close()
      await expect(openJournal({ url: other, highWaterFile })).rejects.toMatchObject(
        refusal(/differs from the identity in its high-water file/),
      )
      await (await open(url, highWaterFile)).close()
    })

    it('is accepted if the high-water file is missing or older than the database', async () => {
      const highWaterFile = `${await makeFolder()}/journal.mark`
      const { url, journal } = await openDumped(highWaterFile)
      const before = await readFile(highWaterFile)
      await write(journal, 'three')
      expect(await readFile(highWaterFile)).not.toEqual(before)
      expect((await stat(highWaterFile)).mode & 0o777).toBe(0o600)
      await journal.close()
      const last = readMark(highWaterFile)
      // Restores an older high-water file, because a power cut may lose the last writes of the file.
      await writeFile(highWaterFile, before)
      await (await open(url, highWaterFile)).close()
      await rm(highWaterFile)
      const again = await open(url, highWaterFile)
      await write(again, 'four')
      const mark = readMark(highWaterFile)
      if (typeof last === 'string' || typeof mark === 'string') throw new Error('there is no mark')
      expect(mark.identity).toBe(last.identity)
      expect(totalOf(mark.commits)).toBeGreaterThan(totalOf(last.commits))
      const inspector = await openInspector(url)
      await inspector.close()
    })
  },
)
