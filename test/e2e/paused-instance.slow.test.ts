import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'

import { startSandbox } from '../sandbox/start-sandbox.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../support/start-postgres.ts'
import { Secret } from '../../src/config/index.ts'
import { postBatch } from '../support/batch-request.ts'
import { isLongRun } from '../support/long-run.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { isHeld, journalFile } from './support/journal-file.ts'
import { sandboxRegister } from './support/sandbox-register.ts'
import { journalKey, startStopping } from './support/stopping-adapter.ts'

const MARKS = 12

/**
 * Two instances on one journal: the first stands still at its `nth` post for longer than its lease; the second finishes. Undefined where
 * the first stood still inside a transaction of SQLite: then it holds the file, and nobody can finish (docs/operations.md).
 */
async function pauseAt(url: string, nth: number, v3: object) {
  const sandbox = await startSandbox()
  const register = await sandboxRegister(sandbox, MARKS)
  const [journal, tuning] = [{ url }, { leaseMs: 1_000 }]
  const partners = [{ id: 'acme', match: { any: true }, v3: { readBackAfterMs: [10, 20], ...v3 } }]
  const config = {
    upstreams: { v3: { baseUrl: sandbox.url } },
    journal: { ...journal, keys: [{ id: 'k1', key: { env: 'JOURNAL_KEY' } }] },
    partners,
    tuning,
  }
  const pausing = await startStopping(config, {
    kind: 'beforeSend',
    nth,
    store: 'sqlite',
    signal: 'SIGSTOP',
  })
  const keys = [{ id: 'k1', key: new Secret(journalKey) }]
  const other = await startAdapter(sandbox.url, { journal: { ...journal, keys }, partners, tuning })
  // A reply whose first part had left can only break off.
  const reply = pausing.post(register.batch, register.headers).catch(() => 'broken off' as const)
  await pausing.stopped()
  if (isHeld(url)) return undefined
  await vi.waitFor(async () => expect(await register.written()).toHaveLength(MARKS), { timeout: 60_000 })
  await vi.waitFor(() => expect(other.log.join()).toContain('records recovered'), {
    timeout: 60_000,
  })
  pausing.goOn()
  const told = await reply
  const resent = await postBatch(other, register.batch, register.headers)
  // After its end nothing can leave any longer.
  await pausing.close()
  return { told, resent, written: await register.written(), register }
}

type Mode = readonly [what: string, nth: number, v3: object]

const modes: readonly Mode[] = [
  ['one by one, at its first post', 1, {}],
  ['one by one, in the middle', 6, {}],
  ['one by one, behind others on one connection', 2, { concurrency: 1 }],
  ['in a $batch', 1, { writeMode: 'batch' }],
]
/** Not with SQLite: the instance may stand still while it reserves its place in the line, and then holds the file's lock. */
const paced: Mode = ['behind the rate', 3, { callsPerSecond: 5, concurrency: 4 }]

function describePauses(store: string, tried: readonly Mode[], makeUrl: () => Promise<string>): void {
  describe(`product 3, ${store}: an instance that stood still for longer than its lease`, () => {
    it.each(tried)('posts nothing that another has taken over: %s', async (_mode, nth, v3) => {
      let paused = await pauseAt(await makeUrl(), nth, v3)
      for (let tries = 1; paused === undefined && tries < 5; tries += 1)
        paused = await pauseAt(await makeUrl(), nth, v3)
      if (paused === undefined) throw new Error('it stood still inside a transaction five times')
      const { told, resent, written, register } = paused
      expect(written).toEqual(register.learners)
      if (told !== 'broken off') {
        const lost: unknown = expect.stringContaining('ADP_JOURNAL_LOST')
        expect(told).toEqual({ status: 504, text: lost })
      }
      expect([resent.status, resent.text.match(/HTTP\/1\.1 201/g)]).toMatchObject([200, { length: MARKS }])
    })
  })
}

describePauses('SQLite', modes, () => Promise.resolve(journalFile().url))

describe.skipIf(missingPostgres() !== undefined)('with a server', () => {
  let postgres: TestPostgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.close())
  // The modes differ in how they send, not in what the store does: one of them shows that it guards them too.
  const tried = isLongRun ? modes : modes.slice(1, 2)
  describePauses('PostgreSQL', [...tried, paced], () => postgres.createDatabase())
})
