import { DatabaseSync } from 'node:sqlite'

import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'

import { examineJournal, type Journal, openJournal } from '../../src/journal/index.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../support/start-postgres.ts'
import { batchOf, beginNew, confirmed } from './batches.ts'
import { makeFolder } from './open-sqlite.ts'

/** A new database with a second connection, which changes what the journal wrote. */
interface Database {
  readonly url: string
  readonly run: (text: string) => Promise<void>
}

/** Flips one bit of a number; null becomes a number. */
const flipped = (column: string, bit: number): string =>
  `coalesce(${column} + ${bit} - 2 * (${column} & ${bit}), ${bit})`

interface Dialect {
  readonly open: () => Promise<Database>
  /** Changes the last bit of bytes. */
  readonly otherBytes: (column: string) => string
}

/** A column and what it is set to. */
type Change = readonly [column: string, value: string]

const damaged = { code: 'ADP_JOURNAL_DAMAGED', status: 503 }

const records = ({ otherBytes }: Dialect): readonly Change[] => [
  ['position', flipped('position', 64)],
  ['key', otherBytes('key')],
  ['key_copy', otherBytes('key_copy')],
  ['state', flipped('state', 1)],
  ['state', flipped('state', 2)],
  ['live', flipped('live', 1)],
  ['again', flipped('again', 1)],
  ['again', flipped('again', 2 ** 40)],
  ['attempts', flipped('attempts', 2)],
  ['superseded', flipped('superseded', 1)],
  ['dead_letter', flipped('dead_letter', 1)],
  ['sum', flipped('sum', 8)],
]

/** Columns of a batch that is found all the same. */
const batches = ({ otherBytes }: Dialect): readonly Change[] => [
  ['partner', `'acmf'`],
  ['content', otherBytes('content')],
  ['received_ms', flipped('received_ms', 1024)],
  ['owner', flipped('owner', 4)],
  ['open', flipped('open', 1)],
  ['live', flipped('live', 2)],
  ['answered', flipped('answered', 1)],
  ['sum', flipped('sum', 1)],
]

/** Columns that a batch is looked for by. */
const names = ({ otherBytes }: Dialect): readonly Change[] => [
  ['owner_id', `'the cliens'`],
  ['ids', otherBytes('ids')],
  ['retired', flipped('retired', 1)],
]

/** What a journal does whose rows were changed by somebody else, without any error of the database. */
function describeDamage(name: string, dialect: Dialect): void {
  const setUp = async () => {
    const database = await dialect.open()
    const journal = await openJournal({ url: database.url })
    onTestFinished(() => journal.close())
    let made = 0
    const begin = async () => {
      made += 1
      const content = batchOf([`a${made}`, `b${made}`], { name: `ids ${made}` })
      return { content, batch: await beginNew(journal, content) }
    }
    return { database, journal, begin }
  }
  const settle = (journal: Journal, batch: number): Promise<void> =>
    journal.settle(batch, [
      confirmed(0),
      { position: 1, state: 'parked', retry: 1_000, answer: 'later', reason: 'unavailable' },
    ])
  const expectRefused = async (journal: Journal, batch: number, change: string): Promise<void> => {
    await expect(journal.load(batch), change).rejects.toMatchObject(damaged)
    await expect(journal.reopen(batch, [1], undefined), change).rejects.toMatchObject(damaged)
  }
  const changeRecord = async ({ run }: Database, batch: number, position: number, [column, value]: Change) =>
    run(`update journal_records set ${column} = ${value} where batch = ${batch} and position = ${position}`)
  const changeBatch = async ({ run }: Database, batch: number, [column, value]: Change) =>
    run(`update journal_batches set ${column} = ${value} where id = ${batch}`)

  describe(`${name}: what somebody else changed`, () => {
    it.each([0, 1])('in record %i, once it is settled', async (position) => {
      const { database, journal, begin } = await setUp()
      const changed = new Set<number>()
      for (const change of records(dialect)) {
        const { batch } = await begin()
        await settle(journal, batch)
        await changeRecord(database, batch, position, change)
        await expectRefused(journal, batch, change.join())
        changed.add(batch)
      }
      const { batch: whole } = await begin()
      await settle(journal, whole)
      const due = await journal.due(Date.now(), 100)
      expect(due.some(({ batch }) => batch === whole)).toBe(true)
      expect(due.length).toBeGreaterThan(2)
      for (const { batch, positions } of due) {
        const opened = await journal.reopen(batch, positions, undefined).catch((error: unknown) => error)
        expect(opened).toMatchObject(changed.has(batch) ? damaged : {})
      }
      expect((await journal.load(whole))?.records).toHaveLength(2)
      expect(journal.isAvailable()).toBe(true)
    })

    it('in an open record, which whoever takes it over cannot read either', async () => {
      const { database, journal, begin } = await setUp()
      const changed: number[] = []
      for (const change of records(dialect)) {
        const { batch } = await begin()
        await changeRecord(database, batch, 1, change)
        await expectRefused(journal, batch, change.join())
        // Its key may be another one: what is older of its own key is not known.
        expect(await journal.olderOpen([{ batch, position: 1 }]), change.join()).toEqual(['damaged'])
        if (change[0] !== 'position') {
          expect(await journal.stillOpen([{ batch, position: 1 }])).toEqual([{ batch, position: 1 }])
        }
        changed.push(batch)
      }
      await journal.close()
      const next = await openJournal({ url: database.url })
      onTestFinished(() => next.close())
      expect((await next.takeOver()).map(({ batch }) => batch)).toEqual(changed)
      for (const batch of changed) await expectRefused(next, batch, String(batch))
    })

    it('in a batch', async () => {
      const { database, journal, begin } = await setUp()
      for (const change of batches(dialect)) {
        const { batch, content } = await begin()
        await settle(journal, batch)
        await changeBatch(database, batch, change)
        await expect(journal.begin(content), change.join()).rejects.toMatchObject(damaged)
        await expect(journal.find(content), change.join()).rejects.toMatchObject(damaged)
        await expect(journal.load(batch), change.join()).rejects.toMatchObject(damaged)
      }
      for (const change of names(dialect)) {
        const { batch } = await begin()
        await settle(journal, batch)
        await changeBatch(database, batch, change)
        await expectRefused(journal, batch, change.join())
      }
    })

    it('shows at the next start, also where no question finds the row any longer', async () => {
      const HOUR_MS = 3_600_000
      const { database, journal } = await setUp()
      const changes: ((batch: number) => Promise<void>)[] = [
        ...names(dialect).map((change) => (batch: number) => changeBatch(database, batch, change)),
        ...records(dialect).map((change) => (batch: number) => changeRecord(database, batch, 1, change)),
      ]
      const batchesOf: number[] = []
      for (let hour = 0; hour <= changes.length; hour += 1) {
        const receivedMs = Date.now() - (30.5 - hour) * HOUR_MS
        const content = batchOf([`a${hour}`, `b${hour}`], { name: `at ${hour}`, receivedMs })
        const batch = await beginNew(journal, content)
        await settle(journal, batch)
        batchesOf.push(batch)
      }
      await journal.close()
      const start = async () => {
        const seen: number[] = []
        const ignore = (): void => undefined
        const next = await openJournal({
          url: database.url,
          events: {
            failed: ignore,
            recovered: ignore,
            leaseLost: ignore,
            rowsDamaged: (count) => seen.push(count),
          },
        })
        await next.close()
        return { seen, untilMs: next.readBackUntilMs }
      }
      expect(await start()).toEqual({ seen: [], untilMs: 0 })
      for (const [index, change] of changes.entries()) await change(batchesOf[index] ?? 0)
      expect(await start()).toEqual({ seen: [changes.length], untilMs: Infinity })
      expect(await start()).toEqual({ seen: [changes.length], untilMs: Infinity })
      // The first seven cannot come again, by the wall clock and by the age of the journal.
      await database.run(`update journal_meta set value = '${48 * HOUR_MS} 7@0' where name = 'age'`)
      expect(await start()).toEqual({ seen: [changes.length - 7], untilMs: Infinity })
      await database.run(`update journal_meta set value = '${48 * HOUR_MS} 99@0' where name = 'age'`)
      const { seen, untilMs } = await start()
      expect(seen).toEqual([changes.length - 7])
      expect(Math.abs(untilMs - Date.now() - 8.5 * HOUR_MS)).toBeLessThan(2 * HOUR_MS)
      expect(await examineJournal({ url: database.url })).toMatchObject({
        usable: true,
        damage: undefined,
        damagedBatches: changes.length,
      })
    })

    it('shows also after the journal has changed the row itself', async () => {
      const { database, journal, begin } = await setUp()
      const { batch, content } = await begin()
      await changeRecord(database, batch, 0, ['attempts', '3'])
      await changeBatch(database, batch, ['partner', `'other'`])
      await settle(journal, batch)
      journal.answered(batch)
      await expect(journal.begin(content)).rejects.toMatchObject(damaged)
      await expectRefused(journal, batch, 'settled')
    })

    it('can be opened to be ended', async () => {
      const { database, journal, begin } = await setUp()
      const { batch } = await begin()
      await settle(journal, batch)
      await changeRecord(database, batch, 1, ['attempts', '3'])
      expect((await journal.reopen(batch, [1], undefined, 'evenDamaged')).after.size).toBe(1)
      await journal.settle(batch, [{ position: 1, state: 'unknown', reason: 'damaged', answer: undefined }])
      expect(await journal.due(Date.now(), 10)).toEqual([])
    })

    it('concerns no batch that begins with it', async () => {
      const { database, journal, begin } = await setUp()
      const { batch, content } = await begin()
      await changeBatch(database, batch, ['partner', `'other'`])
      const [again, fresh] = await Promise.allSettled([journal.begin(content), journal.begin(batchOf(['d']))])
      expect(again).toMatchObject({ status: 'rejected', reason: damaged })
      expect(fresh).toMatchObject({ status: 'fulfilled', value: { kind: 'new' } })
    })

    it('is not looked for in what begins while an older version is served, which changes rows without their sums', async () => {
      const { database, journal, begin } = await setUp()
      await database.run(`insert into journal_instances (host, boot, pid, started, lease_until)
        values ('another', 'boot', 1, 'start', 1)`)
      const { batch, content } = await begin()
      await changeRecord(database, batch, 0, ['attempts', '2'])
      await changeBatch(database, batch, ['live', '1'])
      expect(await journal.begin(content)).toEqual({ kind: 'known', batch, running: true })
      expect((await journal.load(batch))?.records).toHaveLength(2)
      await database.run(`delete from journal_instances where lease_ms is null`)
      const { batch: next } = await begin()
      await changeRecord(database, next, 0, ['attempts', '2'])
      await expectRefused(journal, next, 'attempts')
    })

    it('is not looked for in rows of a version without checksums', async () => {
      const { database, journal, begin } = await setUp()
      const { batch, content } = await begin()
      await database.run('update journal_records set sum = null, key_copy = null')
      await database.run('update journal_batches set sum = null')
      await settle(journal, batch)
      expect(await journal.begin(content)).toEqual({ kind: 'known', batch, running: false })
      expect((await journal.load(batch))?.records).toMatchObject([
        { state: 'confirmed' },
        { state: 'parked' },
      ])
    })
  })
}

describeDamage('SQLite', {
  open: async () => {
    const file = `${await makeFolder()}/journal.db`
    return {
      url: `sqlite:${file}`,
      run: (text) => {
        const database = new DatabaseSync(file)
        database.exec('pragma busy_timeout = 5000')
        database.exec(text)
        database.close()
        return Promise.resolve()
      },
    }
  },
  otherBytes: (column) => `cast(substr(${column}, 1, length(${column}) - 1)
    || iif(substr(${column}, -1) = x'00', x'01', x'00') as blob)`,
})

describe.skipIf(missingPostgres() !== undefined)('with a server', () => {
  let postgres: TestPostgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.close())

  describeDamage('PostgreSQL', {
    open: async () => {
      const url = await postgres.createDatabase()
      return {
        url,
        run: async (text) => {
          const client = new Client({ connectionString: url })
          await client.connect()
          await client.query(text)
          await client.end()
        },
      }
    },
    otherBytes: (column) => `set_byte(${column}, 0, get_byte(${column}, 0) # 1)`,
  })
})
