import { connect as connectSocket, createServer, type AddressInfo } from 'node:net'

import { Pool, type PoolClient } from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'

import { createCommitGate, type Operation } from '../../src/journal/group-commit.ts'
import { createHighWater } from '../../src/journal/high-water.ts'
import { openJournal } from '../../src/journal/index.ts'
import { ownIdentity, processOf } from '../../src/journal/process-identity.ts'
import { connectPostgres, placeOf } from '../../src/journal/postgres/connections.ts'
import { toPostgresError } from '../../src/journal/postgres/failures.ts'
import { createCommit } from '../../src/journal/postgres/store.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../support/start-postgres.ts'
import { batchOf, beginNew, confirmed, START_MS, statesOf } from './batches.ts'
import { createJournalClock, createJournalEvents } from './open-sqlite.ts'

const timeouts = { timeoutMs: 1_000, settleTimeoutMs: 20_000, leaseMs: 60_000 }

const failure = (message: string, members: object = {}): Error => Object.assign(new Error(message), members)

it.each([
  [failure('', { code: '53100' }), 'transient', 'the disk of the database is full', /Free space/],
  [failure('', { code: '57P01' }), 'transient', 'the database is shutting down or takes too long', undefined],
  [failure('', { code: '42P01' }), 'transient', 'the database rejects the operation (42P01)', undefined],
  [
    failure('', { code: '42501' }),
    'transient',
    'the database denies the user access to the tables',
    /owner|grant/,
  ],
  [failure('', { code: '42703' }), 'internal', 'internal error: PostgreSQL rejects a statement (42703)', undefined], // prettier-ignore
  [failure('', { code: '42601' }), 'internal', 'internal error: PostgreSQL rejects a statement (42601)', undefined], // prettier-ignore
  [failure('', { code: 'XX001' }), 'damaged', 'the database is damaged (XX001)', undefined],
  [failure('', { code: '22021' }), 'refused', 'the database rejects the operation (22021)', undefined],
  [failure('', { code: 'ECONNREFUSED' }), 'transient', 'the database cannot be reached: no server listens at this address (ECONNREFUSED)', /listen_addresses/], // prettier-ignore
  [failure('', { code: 'EPIPE' }), 'transient', 'the database cannot be reached: EPIPE', /listen_addresses/],
  [failure('Connection terminated'), 'transient', 'the database cannot be reached', /listen_addresses/],
  [failure('Query read timeout'), 'transient', 'the database cannot be reached: no response within the timeout', /firewall/], // prettier-ignore
])('toPostgresError classifies the error %j as %s: %s', (cause, kind, message, remedy) => {
  const found = toPostgresError(cause)
  expect(found).toMatchObject({ kind, message, cause })
  if (remedy === undefined) expect(found).not.toHaveProperty('remedy')
  else expect(found.remedy).toMatch(remedy)
})

const beginning = (name: string): Operation => ({
  kind: 'begin',
  batch: batchOf(['a'], { name }),
  hasRoom: true,
})

const groupOf = (operation: Operation) => ({
  ...{ instance: 1, nowMs: 0, ageMs: 0, forgottenAgeMs: 0 },
  operations: [operation],
  gate: createCommitGate(),
})

/** Returns connections that lose the answer to the first COMMIT. The server receives this COMMIT if `written` is true. */
function cutAtCommit(url: string, written: boolean): Pool {
  const pool = connectPostgres(url, { timeoutMs: 5_000 })
  onTestFinished(() => pool.end())
  let broken = 0
  return new Proxy(pool, {
    get: (target, name) => {
      if (name !== 'connect') return Reflect.get(target, name) as unknown
      return async (): Promise<PoolClient> => {
        const client = await target.connect()
        const ask = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>
        const withCut = async (...args: unknown[]): Promise<unknown> => {
          if (args[0] !== 'commit' || broken++ > 0) return ask(...args)
          if (written) await ask('commit')
          throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' })
        }
        return Object.assign(Object.create(client) as PoolClient, {
          query: withCut,
          release: (destroy?: boolean) => client.release(destroy),
        })
      }
    },
  })
}

it('toPostgresError classifies a deadlock as contention', () => {
  expect(toPostgresError({ code: '40P01' })).toMatchObject({ kind: 'transient', contended: true })
})

it('placeOf returns the URL of a database without user, password and options', () => {
  expect(placeOf('postgres://u:hush@db.test:5433/markbridge?sslmode=require')).toBe(
    'postgres://db.test:5433/markbridge',
  )
})

describe.skipIf(missingPostgres() !== undefined)('a PostgreSQL journal', () => {
  let postgres: TestPostgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.close())

  async function open(url: string, options = {}) {
    const { heard, events } = createJournalEvents()
    const journal = await openJournal({ url, ...timeouts, events, ...options })
    onTestFinished(() => journal.close())
    return { journal, heard }
  }

  it('opens on the second attempt if the server did not answer the first', async () => {
    const url = new URL(await postgres.createDatabase())
    const port = Number(url.port)
    let connections = 0
    const relay = createServer((socket) => {
      connections += 1
      socket.on('error', () => undefined)
      if (connections > 1) socket.pipe(connectSocket(port, url.hostname)).pipe(socket)
    }).listen(0, '127.0.0.1')
    onTestFinished(() => {
      relay.close()
    })
    await new Promise((resolve) => relay.once('listening', resolve))
    url.hostname = '127.0.0.1'
    url.port = String((relay.address() as AddressInfo).port)
    const { journal } = await open(url.href)
    expect(await beginNew(journal, batchOf(['a']))).toBe(1)
  })
  const query = async (url: string, text: string) => {
    const pool = new Pool({ connectionString: url, max: 1 })
    try {
      return (await pool.query<Record<string, unknown>>(text)).rows
    } finally {
      await pool.end()
    }
  }

  /** Returns the arguments that createCommit needs for the journal at `url`. */
  const commitOptions = async (url: string) => {
    const [row] = await query(url, "select value from journal_meta where name = 'identity'")
    const mark = { identity: String(row?.['value']), commits: new Map<number, number>() }
    const secrets = {
      salt: Buffer.alloc(16),
      key: undefined,
      mark,
      process: processOf(ownIdentity()),
      replayForMs: 86_400_000,
    }
    return [createHighWater(secrets, undefined), secrets] as const
  }

  it('refuses batches while the server is down, and settles records when the server is available again', async ({
    skip,
  }) => {
    const { server } = postgres
    if (server === undefined) return skip()
    const { journal, heard } = await open(await postgres.createDatabase())
    const batch = await beginNew(journal, batchOf(['a']))
    await server.crash()
    await expect(journal.begin(batchOf(['b']))).rejects.toMatchObject({ code: 'ADP_JOURNAL_UNAVAILABLE' })
    await expect(journal.load(batch)).rejects.toMatchObject({ code: 'ADP_JOURNAL_UNAVAILABLE' })
    expect(journal.isAvailable()).toBe(false)
    const settled = journal.settle(batch, [confirmed(0)])
    await server.start()
    await settled
    expect(journal.isAvailable()).toBe(true)
    expect(heard).toEqual([expect.stringMatching(/^failed: the database/), 'recovered'])
    expect(await statesOf(journal, batch)).toEqual(['confirmed'])
    expect(await journal.balances()).toMatchObject([{ received: 1, confirmed: 1 }])
  })

  it('opens new connections after the server has cut its connections', async () => {
    const url = await postgres.createDatabase()
    const { journal } = await open(url)
    const batches = await Promise.all(
      Array.from({ length: 20 }, (_, n) => beginNew(journal, batchOf([`key ${n}`]))),
    )
    const settled = batches.map((batch) => journal.settle(batch, [confirmed(0)]))
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'markbridge'`
    await query(url, cut)
    await Promise.all(settled)
    await query(url, cut)
    expect(await journal.begin(batchOf(['new']))).toMatchObject({ kind: 'new' })
    expect(await journal.balances()).toMatchObject([{ received: 21, confirmed: 20, open: 1 }])
  })

  it('begins no batch if the batch times out while another session holds the order lock', async () => {
    const url = await postgres.createDatabase()
    const { journal } = await open(url)
    const other = new Pool({ connectionString: url, max: 1 })
    const client = await other.connect()
    onTestFinished(async () => {
      client.release()
      await other.end()
    })
    await client.query('begin')
    await client.query('select pg_advisory_xact_lock(7238519461)')
    await expect(journal.begin(batchOf(['a']))).rejects.toMatchObject({ code: 'ADP_JOURNAL_UNAVAILABLE' })
    await client.query('rollback')
    await journal.begin(batchOf(['b']))
    await vi.waitFor(
      async () => expect(await journal.balances()).toMatchObject([{ received: 1, open: 1 }]),
      60_000,
    )
  })

  it('hands over the batches of an instance only if its lease was not renewed for a whole period, even if the stored end of the lease has passed', async () => {
    const url = await postgres.createDatabase()
    const { journal: stopped, heard } = await open(url)
    const clock = createJournalClock()
    const { journal: other } = await open(url, { clock })
    const batch = await beginNew(stopped, batchOf(['a']))
    await query(url, 'update journal_instances set lease_until = 0 where id = 1')
    expect(await other.takeOver()).toEqual([])
    await clock.pass(timeouts.leaseMs * 1.2 - 1)
    expect(await other.takeOver()).toEqual([])
    await clock.pass(1)
    expect(await other.takeOver()).toMatchObject([{ batch, after: new Map([[0, []]]) }])
    await expect(stopped.settle(batch, [confirmed(0)])).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
    expect(await beginNew(stopped, batchOf(['b']))).toBeGreaterThan(batch)
    expect(heard).toEqual(['lease lost'])
  })

  it('begins a batch again after a crash of the server that lost the batch and reused its transaction number', async ({
    skip,
  }) => {
    const { server } = postgres
    if (server === undefined) return skip()
    const url = await postgres.createDatabase()
    const { journal } = await open(url)
    const commit = createCommit(cutAtCommit(url, false), ...(await commitOptions(url)))
    const group = groupOf(beginning('one'))
    expect(await commit(group)).toMatchObject({ ok: false, error: { kind: 'doubtful' } })
    await server.crash()
    await server.start()
    // Makes the server assign the transaction number of the lost batch to another transaction.
    for (let turn = 0; turn < 5; turn += 1) await query(url, 'select pg_current_xact_id()')
    const committed = await commit(group)
    const kept = await query(url, 'select id as batch from journal_batches')
    expect(committed).toMatchObject({
      ok: true,
      results: [{ kind: 'new', batch: Number(kept[0]?.['batch']) }],
    })
    expect(await journal.balances()).toMatchObject([{ received: 1, open: 1 }])
  })

  it.each([
    ['was written', true],
    ['was not written', false],
  ])(
    'stores a batch exactly once after the answer to its commit was lost, if the commit %s',
    async (_what, written) => {
      const url = await postgres.createDatabase()
      const { journal } = await open(url)
      const pool = cutAtCommit(url, written)
      const commit = createCommit(pool, ...(await commitOptions(url)))
      const group = groupOf(beginning('one'))
      expect(await commit(group)).toMatchObject({ ok: false, error: { kind: 'doubtful' } })
      const more = { ...group, operations: [...group.operations, beginning('two')] }
      const begun = { kind: 'new', lease: 1, receivedMs: START_MS, idsReused: false }
      expect(await commit(more)).toEqual({
        ok: true,
        results: [
          { ...begun, batch: 1, after: new Map() },
          { ...begun, batch: 2, after: new Map([[0, [{ batch: 1, position: 0 }]]]) },
        ],
      })
      expect(await journal.balances()).toMatchObject([{ received: 2, open: 2 }])
      expect(await query(url, 'select count(*)::int as n from journal_batches')).toEqual([{ n: 2 }])
    },
  )

  it('keeps all records of a key in one order when two instances begin batches at the same time', async () => {
    const url = await postgres.createDatabase()
    const [one, two] = [await open(url), await open(url)].map(({ journal }) => journal)
    if (one === undefined || two === undefined) throw new Error('not open')
    const begun = await Promise.all(
      Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? one : two).begin(batchOf(['shared', `key ${n}`]))),
    )
    const older = begun
      .map((one) => ({
        batch: one.batch,
        after: one.kind === 'new' ? (one.after.get(0) ?? []).map((ref) => ref.batch) : [],
      }))
      .sort((first, second) => first.batch - second.batch)
    const numbers = older.map(({ batch }) => batch)
    // Each record waits for the record before it, no matter which instance began that record.
    expect(older.map(({ after }) => after)).toEqual([[], ...numbers.slice(0, -1).map((number) => [number])])
    for (const [index, { batch }] of begun.entries())
      await (index % 2 === 0 ? one : two).settle(batch, [confirmed(0), confirmed(1)])
    expect(await one.balances()).toMatchObject([{ received: 80, confirmed: 80 }])
  })
})
