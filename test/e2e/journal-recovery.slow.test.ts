import { writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

import { Pool } from 'undici'
import { describe, expect, it, onTestFinished, vi } from 'vitest'

import { startCli } from '../cli/run-cli.ts'
import { startSandbox } from '../sandbox/start-sandbox.ts'
import {
  batchOf,
  batchPath,
  type BatchText,
  failuresOf,
  flatRecords,
  guid,
  postBatch,
  readBatchReply,
} from '../support/batch-request.ts'
import {
  type Answer,
  echoRecord,
  replyWith,
  type SeenRequest,
  startUpstream,
} from '../support/scripted-upstream.ts'
import { type Adapter, onePartner, startAdapter } from '../support/start-adapter.ts'
import { journalFile, type JournalSection } from './support/journal-file.ts'
import { leave, payloadOf } from './support/leave.ts'
import { sandboxRegister } from './support/sandbox-register.ts'

/** Tokens of one client: what names it is the same in both. */
const [older, newest] = ['1', '2'].map((jti) => {
  const claims = Buffer.from(JSON.stringify({ iss: 'sts', client_id: 'app', jti })).toString('base64url')
  return `Bearer e30.${claims}.c2ln`
}) as [string, string]
const created = { status: 201, codes: 'record' }
const quick = { partners: [{ id: 'default', match: { any: true }, v3: { readBackAfterMs: [10, 20] } }] }
/** The states of all records, read from the file as a later version of it would be. */
function statesIn({ url }: JournalSection): unknown {
  const database = new DatabaseSync(url.slice('sqlite:'.length), { readOnly: true })
  const rows = database.prepare('SELECT state FROM journal_records ORDER BY batch, position').all()
  database.close()
  return rows.map(({ state }) => state)
}

/** Resolves once an event was logged. */
async function logged(adapter: Adapter, msg: string, count = 1): Promise<Record<string, unknown>[]> {
  const find = () => adapter.events().filter((event) => event['msg'] === msg)
  await vi.waitFor(() => expect(find().length).toBeGreaterThanOrEqual(count), { timeout: 60_000 })
  return find()
}

interface DyingAdapter {
  /** Posts a batch; nobody waits for the answer. */
  post(batch: BatchText, headers: Record<string, string>): void
  kill(): Promise<unknown>
}

/** The adapter in a process of its own, which will be killed. */
async function startDying(v3: string, { url, keys }: JournalSection): Promise<DyingAdapter> {
  const file = `${url.slice('sqlite:'.length)}.yaml`
  const journal = { url, keys: keys.map(({ id }) => ({ id, key: { env: 'JOURNAL_KEY' } })) }
  const config = { listen: { port: 0 }, upstreams: { v3: { baseUrl: v3 } }, journal }
  writeFileSync(file, JSON.stringify(config))
  const cli = startCli(['serve', '--config', file], { JOURNAL_KEY: keys[0]?.key.reveal() ?? '' })
  onTestFinished(() => void cli.stop('SIGKILL'))
  const [, address = ''] = /adapter ready (\S+)/.exec(await cli.until(/adapter ready \S+/)) ?? []
  const pool = new Pool(address)
  onTestFinished(() => pool.destroy())
  return {
    post: (batch, headers) => {
      const request = {
        method: 'POST',
        path: batchPath,
        headers: { ...batch.headers, ...headers },
        body: batch.body,
      } as const
      // The connection breaks with the process.
      pool.request(request).catch(() => undefined)
    },
    kill: () => cli.stop('SIGKILL'),
  }
}

describe('product 3: what an instance left open', () => {
  /** A journal as an instance leaves it that dies with its posts under way; some of them were applied. */
  async function leaveOpen(applied: boolean, encrypted: boolean) {
    const sandbox = await startSandbox()
    const register = await sandboxRegister(sandbox, 3)
    const journal = journalFile({ encrypted })
    const fault = { kind: 'stall', apply: applied, method: 'POST', path: 'AttendanceRecords' }
    const headers = { 'Content-Type': 'application/json' }
    await sandbox.json('PUT', '/_sandbox/faults', { headers, body: JSON.stringify(fault) })
    const dying = await startDying(sandbox.url, journal)
    dying.post(register.batch, register.headers)
    await vi.waitFor(() => expect(statesIn(journal)).toHaveLength(3), 60_000)
    if (applied) await vi.waitFor(async () => expect(await register.written()).toHaveLength(3), 60_000)
    await dying.kill()
    await sandbox.request('DELETE', '/_sandbox/faults')
    return { sandbox, register, journal }
  }

  it.each([
    ['was applied', true],
    ['was not applied', false],
  ])(
    'is finished at the next start where it %s, with the credentials of an encrypted journal',
    async (_name, applied) => {
      const { sandbox, register, journal } = await leaveOpen(applied, true)
      const adapter = await startAdapter(sandbox.url, { journal, ...quick })
      expect(await logged(adapter, 'records recovered')).toMatchObject([{ records: 3, accepted: 3 }])
      expect(await register.written()).toEqual(register.learners)
      const reply = await postBatch(adapter, register.batch, register.headers)
      expect(failuresOf(readBatchReply(reply))).toEqual([created, created, created])
      expect(await register.written()).toEqual(register.learners)
    },
  )

  it('is looked for again within 30 s after the faults are over, however often the adapter died', async () => {
    let readable = false
    const upstream = await startUpstream((seen, response) =>
      (seen.method === 'POST' ? echoRecord : replyWith(readable ? 200 : 500, { value: [] }))(seen, response),
    )
    const journal = journalFile({ encrypted: true })
    await leave(journal, { payload: payloadOf(batchOf(flatRecords(1))), learners: [1], crashes: 8 })
    let ahead = 300_000
    const nowMs = () => Date.now() + ahead
    const adapter = await startAdapter(upstream.url, { journal, ...quick }, { nowMs })
    expect(await logged(adapter, 'records recovered')).toMatchObject([{ unknown: 1 }])
    readable = true
    ahead += 30_000
    const [, then] = await logged(adapter, 'records recovered', 2)
    expect(then).toMatchObject({ accepted: 1 })
  })

  it('gives way to newer marks where no credentials are kept', async () => {
    const { sandbox, register, journal } = await leaveOpen(true, false)
    const adapter = await startAdapter(sandbox.url, { journal, ...quick })
    const newer = batchOf(
      register.learners.map((Learner) => ({
        ...(JSON.parse(/\{"Present".*\}/.exec(register.batch.body)?.[0] ?? '{}') as object),
        Learner,
        Comment: 'newer',
      })),
      { batch: 'batch_newer', boundary: 'batch_newer' },
    )
    const reply = await postBatch(adapter, newer, register.headers)
    expect(failuresOf(readBatchReply(reply))).toEqual([created, created, created])
    const effects = await sandbox.json('GET', '/_sandbox/effects')
    const comments = (effects.body as { comment: string | null }[]).map(({ comment }) => comment)
    expect(comments).toEqual(['register', 'register', 'register', 'newer', 'newer', 'newer'])
    // It was never looked for: those credentials may be of another client.
    expect(statesIn(journal)).toEqual([3, 3, 3, 1, 1, 1])
  })
})

describe('batch-wire 3: a batch whose client was told that all is well', () => {
  const mismatch = batchOf(flatRecords(3), { boundary: 'batch_other' })

  it('has its records tried again in the background until they are taken', async () => {
    let open = false
    const upstream = await startUpstream((seen, response) =>
      (open || !seen.body.includes(guid(2)) ? echoRecord : replyWith(503))(seen, response),
    )
    const journal = journalFile()
    let ahead = 0
    const adapter = await startAdapter(upstream.url, { journal }, { nowMs: () => Date.now() + ahead })
    const first = await postBatch(adapter, mismatch)
    expect(first.status).toBe(200)
    expect(first.text).toContain('changesetresponse_')
    open = true
    ahead = 10_000
    expect(await logged(adapter, 'records recovered')).toMatchObject([{ records: 1, accepted: 1 }])
    expect(upstream.seen.length).toBe(4)
    expect((await postBatch(adapter, mismatch)).text).toBe(first.text)
    expect(upstream.seen.length).toBe(4)
  })

  it('has them tried with the newest credentials once the service denies their own', async () => {
    let now = 0
    const upstream = await startUpstream((seen, response) => {
      if (now > 0 && seen.headers.authorization !== newest) return replyWith(401)(seen, response)
      return (now === 0 && seen.body.includes(guid(2)) ? replyWith(503) : echoRecord)(seen, response)
    })
    const journal = journalFile({ encrypted: true })
    const adapter = await startAdapter(upstream.url, { journal }, { nowMs: () => Date.now() + now })
    await postBatch(adapter, mismatch, { Authorization: older })
    const other = batchOf(flatRecords(1), { batch: 'batch_later', boundary: 'batch_later' })
    now = 10_000
    await postBatch(adapter, other, { Authorization: newest })
    await logged(adapter, 'records recovered')
    now = 60_000
    const events = await logged(adapter, 'records recovered', 2)
    expect(events).toMatchObject([{ accepted: 0 }, { accepted: 1 }])
    expect(statesIn(journal)).toEqual([1, 1, 1, 1])
  })

  it('lists what the service refused as a dead letter', async () => {
    const upstream = await startUpstream((seen, response) =>
      (seen.body.includes(guid(2)) ? replyWith(400, [{ Message: 'm', ErrorCode: 'ATT_VAL_2' }]) : echoRecord)(
        seen,
        response,
      ),
    )
    const journal = journalFile()
    const adapter = await startAdapter(upstream.url, { journal })
    await postBatch(adapter, mismatch)
    const database = new DatabaseSync(journal.url.slice('sqlite:'.length), { readOnly: true })
    const rows = database.prepare('SELECT position, reason FROM journal_records WHERE dead_letter = 1').all()
    database.close()
    expect(rows.map((row) => ({ ...row }))).toEqual([{ position: 1, reason: 'ATT_VAL_2' }])
  })
})

it('product 3: settles in the background what stayed unknown, and then has the answer', async () => {
  let readable = false
  let lost = ''
  const answer: Answer = (seen: SeenRequest, response) => {
    if (seen.method === 'GET') {
      const page = { value: [{ ...(JSON.parse(lost) as object), ExternalID: guid(77) }] }
      return (readable ? replyWith(200, page) : replyWith(500))(seen, response)
    }
    if (!seen.body.includes(guid(2))) return echoRecord(seen, response)
    lost = seen.body
    response.socket?.destroy()
  }
  const upstream = await startUpstream(answer)
  let ahead = 0
  const adapter = await startAdapter(
    upstream.url,
    { journal: journalFile(), ...onePartner({ v3: { readBackAfterMs: [5] } }) },
    { nowMs: () => Date.now() + ahead },
  )
  const batch = batchOf(flatRecords(3))
  const first = readBatchReply(await postBatch(adapter, batch))
  expect(first.map(({ status }) => status)).toEqual([201, 504, 201])
  readable = true
  ahead = 10_000
  await logged(adapter, 'records recovered')
  expect(failuresOf(readBatchReply(await postBatch(adapter, batch)))).toEqual([created, created, created])
  expect(upstream.seen.filter(({ method }) => method === 'POST').length).toBe(3)
})

it('product 3: looks with the newest credentials once the service denies those of the batch', async () => {
  let lost = ''
  const upstream = await startUpstream((seen, response) => {
    if (seen.method === 'GET') {
      const page = { value: [{ ...(JSON.parse(lost) as object), ExternalID: guid(77) }] }
      const isNewest = seen.headers.authorization === newest
      return (isNewest ? replyWith(200, page) : replyWith(401))(seen, response)
    }
    if (lost !== '') return echoRecord(seen, response)
    lost = seen.body
    response.socket?.destroy()
  })
  const journal = journalFile({ encrypted: true })
  let ahead = 0
  const adapter = await startAdapter(
    upstream.url,
    { journal, ...onePartner({ v3: { readBackAfterMs: [5] } }) },
    { nowMs: () => Date.now() + ahead },
  )
  await postBatch(adapter, batchOf(flatRecords(1)), { Authorization: older })
  const other = batchOf(flatRecords(2).slice(1), { batch: 'batch_later', boundary: 'batch_later' })
  await postBatch(adapter, other, { Authorization: newest })
  ahead = 10_000
  await logged(adapter, 'records recovered')
  ahead = 60_000
  await logged(adapter, 'records recovered', 2)
  expect(statesIn(journal)).toEqual([1, 1])
})

it('product 3: sends nothing that cannot be kept', async () => {
  const upstream = await startUpstream()
  const journal = journalFile()
  const adapter = await startAdapter(upstream.url, { journal })
  const other = new DatabaseSync(journal.url.slice('sqlite:'.length))
  other.exec('BEGIN IMMEDIATE')
  const refused = await postBatch(adapter, batchOf(flatRecords(2)))
  expect(refused.status).toBe(503)
  expect(refused.headers['retry-after']).toBeDefined()
  expect(JSON.parse(refused.text)).toMatchObject({ error: { code: 'ADP_JOURNAL_UNAVAILABLE' } })
  expect((await adapter.request('GET', '/readyz')).status).toBe(503)
  expect(upstream.seen).toEqual([])
  other.exec('ROLLBACK')
  other.close()
  const taken = await postBatch(adapter, batchOf(flatRecords(2)))
  expect(failuresOf(readBatchReply(taken))).toEqual([created, created])
  expect((await adapter.request('GET', '/readyz')).status).toBe(200)
})
