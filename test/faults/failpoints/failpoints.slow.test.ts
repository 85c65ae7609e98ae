import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { Client } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'

import { missingPostgres, startPostgres } from '../../support/start-postgres.ts'
import { replyWith, startUpstream } from '../../support/scripted-upstream.ts'
import { type Failpoint, failpointVariable, formatFailpoint } from './failpoint.ts'

/** Runs a program of this folder with a failpoint, and returns its exit status or signal and its output. */
async function run(
  program: string,
  argument: string,
  failpoint: Failpoint,
): Promise<[end: unknown, printed: string]> {
  const env = {
    ...process.env,
    [failpointVariable]: formatFailpoint(failpoint),
  }
  const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
  const args = ['--import', path('preload.ts'), path(`programs/${program}.ts`), argument]
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  const [status, signal] = (await once(child, 'close')) as [number | null, string | null]
  return [signal ?? status, printed]
}

const commits: [failpoint: Omit<Failpoint, 'store'>, end: unknown, kept: number[]][] = [
  [{ kind: 'beforeCommit', nth: 2 }, 'SIGKILL', [1]],
  [{ kind: 'afterCommit', nth: 2 }, 'SIGKILL', [1, 2]],
  [{ kind: 'afterCommit', nth: 4 }, 0, [1, 2, 3]],
]

test.each(commits)(
  'a process with the failpoint %o in its SQLite commits ends with %s, and leaves the commits %j in the database',
  async (point, end, kept) => {
    const folder = mkdtempSync(join(tmpdir(), 'markbridge-failpoint-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'kept.db')
    expect((await run('commit-in-thread', file, { ...point, store: 'sqlite' }))[0]).toBe(end)
    const database = new DatabaseSync(file)
    expect(
      database
        .prepare('SELECT n FROM kept')
        .all()
        .map(({ n }) => n),
    ).toEqual(kept)
    database.close()
  },
)

describe.skipIf(missingPostgres() !== undefined)('a failpoint with PostgreSQL', () => {
  test('kills the process before or after the chosen commit reaches the server', async () => {
    const postgres = await startPostgres()
    onTestFinished(() => postgres.close())
    for (const [point, end, kept] of commits) {
      const url = await postgres.createDatabase()
      const client = new Client({ connectionString: url })
      await client.connect()
      await client.query('CREATE TABLE kept (n int)')
      expect((await run('commit-in-postgres', url, { ...point, store: 'postgres' }))[0]).toBe(end)
      const { rows } = await client.query<{ n: number }>('SELECT n FROM kept ORDER BY n')
      expect(rows.map(({ n }) => n)).toEqual(kept)
      await client.end()
    }
  })
})

const sends: [kind: Failpoint['kind'], nth: number, seen: string[], printed: string][] = [
  ['beforeSend', 2, ['one'], 'done\n'],
  ['afterSend', 1, ['one'], ''],
  ['answerHead', 1, ['one'], ''],
  ['answerEnd', 2, ['one', 'two'], 'done\n'],
]

test.each(sends)(
  'a process with the failpoint %s at call %i dies after the service has received %j',
  async (kind, nth, seen, printed) => {
    const upstream = await startUpstream(replyWith(201, 'done'))
    expect(await run('post-twice', upstream.url, { kind, nth, store: 'sqlite' })).toEqual([
      'SIGKILL',
      printed,
    ])
    await expect.poll(() => upstream.seen.map(({ body }) => body)).toEqual(seen)
  },
)
