import { randomUUID } from 'node:crypto'
import { chown, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { type Journal, openJournal } from '../../src/journal/index.ts'
import { encodeKnown, nothingKnown, parseKnown } from '../../src/rollout/live/known-stages.ts'
import { createRolloutStore } from '../../src/rollout/store/rollout-store.ts'
import { batchOf, beginNew, confirmed, START_MS } from '../journal/batches.ts'
import { type CliResult, runCli } from './run-cli.ts'
import { runCommand } from './run-command.ts'

/** The folder of a journal that stays open while the commands read it. */
let folder: string
let url: string
let journal: Journal
/** The time of a retry, which is after the end of all tests in this file and within the limit for retry times. */
const dueMs = Date.now() + 600_000
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'markbridge-cli-'))
  url = `sqlite:${join(folder, 'journal.db')}`
  journal = await openJournal({ url })
  await beginNew(journal, batchOf(['a', 'b']))
  await journal.settle(1, [
    confirmed(0),
    { position: 1, state: 'refused', answer: 'no', reason: 'ATT_VAL_2\u001b[2J', deadLetter: true },
  ])
  await beginNew(journal, batchOf(['c'], { receivedMs: START_MS + 3_600_000 }))
  await journal.settle(2, [{ position: 0, state: 'parked', answer: 'ok', reason: 'throttled', retry: dueMs }])
})
afterAll(async () => {
  await journal.close()
  await rm(folder, { recursive: true })
})

const run = (...args: string[]): Promise<CliResult> => runCommand(['journal', ...args, '--journal', url])
const json = async (...args: string[]): Promise<unknown> =>
  JSON.parse((await run(...args, '--json')).stdout) as unknown

test('journal ls lists batches and the totals of each partner', async () => {
  const { status, stdout } = await runCli(['journal', 'ls', '--journal', url])
  expect({ status, lines: stdout.split('\n') }).toEqual({
    status: 0,
    lines: [
      'batch  received                  partner  records  open  confirmed  refused  unknown  parked  notApplied  dead  next due',
      `2      2026-09-01T01:00:00.000Z  acme     1        0     0          0        0        1       0           0     ${new Date(dueMs).toISOString()}`,
      '1      2026-09-01T00:00:00.000Z  acme     2        0     1          1        0        0       0           1',
      '',
      'partner  received  open  confirmed  refused  unknown  parked  notApplied  holds',
      'acme     3         0     1          1        0        1       0           yes',
      '',
    ],
  })
  expect(await json('ls', '--since', '2026-09-01T00:30:00Z')).toMatchObject({
    batches: [{ batch: 2 }],
    balances: [{ holds: true }],
  })
  expect(await json('ls', '--state', 'confirmed', '--limit', '5')).toMatchObject({ batches: [{ batch: 1 }] })
})

test('journal show prints the state of each record and the remedy of dead letters, without control characters', async () => {
  const { stdout } = await run('show', '1')
  expect(stdout).toMatch(
    /^batch 1 of acme, received 2026-09-01T00:00:00.000Z, 2 record\(s\)\n\npart {2}state/,
  )
  expect(stdout).toMatch(/\n2 +refused +ATT_VAL_2\?\[2J +1 +\S+Z +yes\n\npart 2: The service refused .*\n$/)
  expect(await json('show', '1')).toMatchObject({
    ...{ batch: 1, received: '2026-09-01T00:00:00.000Z' },
    parts: [
      { part: 1, state: 'confirmed' },
      { part: 2, state: 'refused', settled: expect.stringMatching(/^\d{4}-\S+Z$/) as unknown },
    ],
  })
})

test('journal ls --dead-letters prints a remedy for each dead letter, and journal dismiss removes dead letters', async () => {
  expect((await run('ls', '--dead-letters')).stdout).toMatch(
    /^batch 1 part 2 of acme, .*: refused, ATT_VAL_2.*\n {2}The service refused/,
  )
  expect((await run('dismiss', '1', '1')).stdout).toBe('0 dead letter(s) dismissed.\n')
  expect((await run('dismiss', '1', '1', '2')).stdout).toBe('1 dead letter(s) dismissed.\n')
  expect(await json('ls', '--dead-letters')).toEqual({ deadLetters: [] })
})

test.each(['show', 'dismiss', 'reconcile'])('journal %s exits with status 1 for a batch that does not exist', async (command) => {
  const { status, stderr } = await run(command, '999')
  expect([status, stderr]).toEqual([1, expect.stringContaining('The journal has no batch 999.')])
}) // prettier-ignore

test('journal reconcile makes records that wait for a retry due immediately', async () => {
  expect(await journal.due(Date.now(), 10)).toEqual([])
  expect((await run('reconcile')).stdout).toBe('1 record(s) of 1 batch(es) are due now.\n')
  expect(await journal.due(Date.now(), 10)).toEqual([{ batch: 2, positions: [0] }])
})

test('journal purge deletes data that is older than the retention periods in the configuration', async () => {
  const config = join(folder, 'markbridge.yaml')
  const times = 'replayForMs: 1s, keepRecordsMs: 3650d'
  await writeFile(
    config,
    `upstreams: { v3: { baseUrl: "http://v3.test" } }\njournal: { url: "${url}", ${times} }\n`,
  )
  const purged = async (): Promise<unknown> => {
    const { status, stdout } = await runCommand(['journal', 'purge', '--config', config, '--json'])
    return { status, purged: JSON.parse(stdout) as unknown }
  }
  // Retention periods count only the time in which the journal was open, so nothing is old enough to be deleted.
  expect(await purged()).toEqual({ status: 0, purged: { expired: 0, payloads: 0, batches: 0 } })
  const database = new DatabaseSync(url.slice('sqlite:'.length))
  database.exec("update journal_meta set value = '60000' where name = 'age'")
  database.close()
  expect(await purged()).toEqual({
    status: 0,
    purged: { expired: 0, payloads: Date.now() > START_MS + 1_000 ? 1 : 0, batches: 0 },
  })
})

test.each([
  [['show', '99'], 1, 'The journal has no batch 99.'],
  [['show', 'x'], 2, 'whole number'],
  [
    ['ls', '--state', 'gone'],
    2,
    'Allowed choices are open, confirmed, refused, unknown, parked, notApplied.',
  ],
  [['ls', '--since', 'yesterday'], 2, 'ISO 8601'],
  [['ls', '--journal', 'none'], 2, 'journal.url is none, so there is no journal. Nothing was done.'],
  [
    ['ls', '--journal', 'sqlite:/nowhere/x.db'],
    1,
    'The journal sqlite:/nowhere/x.db cannot be opened: the file cannot be opened. Nothing was written. Check its path',
  ],
  [['ls', '--config', '/nowhere.yaml'], 2, 'cannot be read'],
])('the command journal %j exits with status %i and prints: %s', async (args, status, text) => {
  const own = args.includes('--journal') || args.includes('--config')
  const result = own ? await runCommand(['journal', ...args]) : await run(...args)
  expect(result.status).toBe(status)
  expect(result.stderr).toContain(text)
})

test('journal adopt prints the damage and the consequences, and accepts the journal only with --yes', async () => {
  const lost = join(folder, 'lost.db')
  const first = await openJournal({ url: `sqlite:${lost}` })
  await beginNew(first, batchOf(['a']))
  await first.close()
  await rm(lost)
  const adopt = (...args: string[]) => runCommand(['journal', ...args, '--journal', `sqlite:${lost}`])
  const refused = await adopt('ls')
  expect(refused.status).toBe(1)
  expect(refused.stderr).toMatch(
    /lost\.db is damaged or was replaced: the database file is missing, .*journal adopt --journal sqlite:\S+lost\.db\.\n$/,
  )
  const asked = await adopt('adopt')
  expect(asked.status).toBe(1)
  expect(asked.stdout).toMatch(
    /the database file is missing.*\n.*new journal is created[^]*For 24 h[^]*--yes/,
  )
  await expect(openJournal({ url: `sqlite:${lost}` })).rejects.toMatchObject({ code: 'ADP_JOURNAL_DAMAGED' })
  const adopted = await adopt('adopt', '--yes')
  expect([adopted.status, adopted.stderr]).toEqual([0, ''])
  const next = await openJournal({ url: `sqlite:${lost}` })
  expect(next.readBackUntilMs).toBeGreaterThan(Date.now() + 86_000_000)
  await next.close()
})

test('journal adopt changes nothing in a usable journal, and renames an unusable journal', async () => {
  const broken = join(folder, 'broken.db')
  await writeFile(broken, 'no database'.repeat(1_000))
  const { status, stdout } = await runCommand(['journal', 'adopt', '--yes', '--journal', `sqlite:${broken}`])
  expect({ status, says: stdout }).toEqual({
    status: 0,
    says: expect.stringMatching(/^Kept as .*broken\.db\.damaged-\S+\nThe journal is accepted/) as unknown,
  })
  const used = join(folder, 'used.db')
  const first = await openJournal({ url: `sqlite:${used}` })
  await beginNew(first, batchOf(['a']))
  await first.close()
  await rm(`${used}.mark`)
  const asked = await runCommand(['journal', 'adopt', '--json', '--journal', `sqlite:${used}`])
  expect(JSON.parse(asked.stdout)).toMatchObject({
    condition: {
      usable: true,
      batches: 1,
      openRecords: 1,
      damage: expect.stringContaining('missing') as unknown,
    },
  })
  expect((await runCommand(['journal', 'adopt', '--yes', '--journal', `sqlite:${used}`])).status).toBe(0)
  const next = await openJournal({ url: `sqlite:${used}` })
  expect(await next.balances()).toMatchObject([{ open: 1 }])
  await next.close()
})

describe('journal adopt for a journal with stages', () => {
  const setting = { stage: 'shadow', percent: 0, always: [], never: [] } as const

  /**
   * Creates a journal whose stage file has entries of the audit trail that the journal lacks: the database is missing (`all`), or it is
   * an old copy (`since`). The partner is at `shadow` in the stage file, and at `v3` in the configuration.
   */
  async function restored(lost: 'all' | 'since') {
    const path = join(folder, `${randomUUID()}.db`)
    const config = `${path}.yaml`
    await writeFile(
      config,
      `upstreams: { v3: { baseUrl: "http://127.0.0.1" }, v2: { baseUrl: "http://127.0.0.1" } }
journal: { url: "sqlite:${path}" }
partners: [{ id: acme, match: { any: true }, stage: v3 }]\n`,
    )
    const own = await openJournal({ url: `sqlite:${path}` })
    await beginNew(own, batchOf(['a']))
    await own.close()
    const trail = { entries: 9, hash: 'lost' }
    const partners = new Map([['acme', { setting: { ...setting, revision: 7 }, pending: undefined }]])
    const known = { partners, begins: new Map(), trail, isTrailContinued: true }
    const view = { ...known, asked: undefined, instance: undefined }
    await writeFile(`${path}.stages`, encodeKnown({ ...nothingKnown, view }))
    await rm(lost === 'all' ? path : `${path}.mark`)
    return {
      path,
      adopt: (...args: string[]) => runCommand(['journal', 'adopt', '--config', config, ...args]),
    }
  }

  test.each(['all', 'since'] as const)(
    'takes a partner back to the stage in the stage file if entries of the audit trail are lost: %s',
    async (lost) => {
      const { path, adopt } = await restored(lost)
      const text =
        lost === 'all'
          ? /audit trail are lost: each partner begins/
          : /audit trail have the state of this copy/
      expect((await adopt()).stdout).toMatch(text)
      const { status, stdout } = await adopt('--yes')
      expect({ status, stdout }).toEqual({
        status: 0,
        stdout: expect.stringContaining('acme was taken back to the stage of the stage file.') as unknown,
      })
      const next = await openJournal({ url: `sqlite:${path}` })
      const store = createRolloutStore(next.database)
      const known = parseKnown(await readFile(`${path}.stages`, 'utf8'))?.view?.trail
      expect((await store.snapshot(known)).partners.get('acme')?.state).toMatchObject(setting)
      expect((await store.verify(known)).broken).toBeUndefined()
      await next.close()
    },
  )

  test.skipIf(process.getuid?.() !== 0)(
    "does not change the owner of the journal's files if root runs the command",
    async () => {
      const { path, adopt } = await restored('all')
      for (const file of [`${path}.mark`, `${path}.stages`]) await chown(file, 12_345, 12_346)
      expect((await adopt('--yes')).status).toBe(0)
      for (const file of [path, `${path}.mark`, `${path}.stages`]) {
        const { uid, gid } = await stat(file)
        expect([file, uid, gid]).toEqual([file, 12_345, 12_346])
      }
    },
  )
})

describe('journal purge --learner', () => {
  const learner = '0f3ac2c1-04d6-4a8b-9c3e-5f1e7a9d2c41'
  const escaped = learner.toUpperCase().replace('A', '\\u0041').replace('F', '\\u0066')
  const key = '07'.repeat(32)

  async function openSealed() {
    const config = join(folder, `learner-${randomUUID()}.yaml`)
    const own = `sqlite:${config}.db`
    await writeFile(
      config,
      `upstreams: { v3: { baseUrl: "http://127.0.0.1" } }\njournal: { url: "${own}", keys: [{ id: k1, key: { env: LEARNER_KEY } }] }\n`,
    )
    const sealed = await openJournal({ url: own, keys: [{ id: 'k1', key: Buffer.from(key, 'hex') }] })
    for (const text of [learner, escaped, 'another']) {
      const payload = Buffer.from(`{"Learner":"${text}"}`)
      await beginNew(sealed, batchOf([text], { payload }))
    }
    await sealed.settle(1, [confirmed(0)])
    await sealed.settle(3, [confirmed(0)])
    const purge = (id: string, input = '', ...args: string[]) =>
      runCommand(
        ['journal', 'purge', '--config', config, '--learner', id, ...args],
        { LEARNER_KEY: key },
        input,
      )
    return { sealed, purge, config }
  }

  test('erases settled batches of a learner, reports the batches that it did not erase, and prints no id', async () => {
    const { sealed, purge, config } = await openSealed()
    const first = await purge('-', `${learner}\n`)
    expect({ ...first, stdout: first.stdout.split('\n') }).toEqual({
      status: 1,
      stderr: '',
      stdout: [
        'Erased the requests and replies of 1 batch(es).',
        expect.stringContaining(
          `not settled, so they were not erased: 2. markbridge journal show --config ${config} <batch>`,
        ) as unknown,
        '',
      ],
    })
    await sealed.settle(2, [confirmed(0)])
    const { status, stdout } = await purge(learner.toUpperCase(), '', '--json')
    expect([status, JSON.parse(stdout)]).toEqual([
      0,
      { erased: [2], unsettled: [], unreadable: [], rewritten: true },
    ])
    expect((await sealed.load(3))?.payload).toBeDefined()
    await sealed.close()
  })

  test('accepts only a GUID, and quotes no other text in its error', async () => {
    const { sealed, purge } = await openSealed()
    const { status, stderr } = await purge(`${learner}9`)
    expect([status, stderr]).toEqual([2, expect.stringMatching(/is not a GUID/)])
    expect(stderr).not.toContain('0f3ac2c1')
    await sealed.close()
  })
})
