import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'

import type { EffectEntry } from '../../src/sandbox/control/routes.ts'
import type { Failpoint } from '../faults/failpoints/failpoint.ts'
import { type Life, startLife } from '../faults/supervisor/run-life.ts'
import { startSandbox } from '../sandbox/start-sandbox.ts'
import { batchOf, batchPath, type BatchText } from '../support/batch-request.ts'
import { freePort } from '../support/free-port.ts'
import { missingPostgres, startPostgres, type TestPostgres } from '../support/start-postgres.ts'
import { journalFile } from './support/journal-file.ts'

const OWNERS = 3
const BATCHES = 5
const RECORDS = 4
/** Of each batch, at least. */
const RESENDS = 12
/** Replies after which the process is killed from outside, when no failpoint has ended it. */
const REPLIES = 40
/** Of a loaded machine: each test starts four processes one after another. */
const timeout = 60_000

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const tokenOf = (owner: number): string =>
  `${encode({ alg: 'none' })}.${encode({ client_id: `school-${owner}` })}.c2ln`

/** A batch of one owner, and what its client was told. */
interface Sent {
  readonly token: string
  readonly text: BatchText
  readonly comments: readonly string[]
  /** The bytes of each part that said created, as they came first. */
  readonly created: (string | undefined)[]
  /** Comments of records that were said not to be applied, until the batch is sent again. */
  notApplied: string[]
  whole: string | undefined
  /** Batch replies, whole. */
  replies: number
}

interface Told {
  readonly status: number
  readonly type: string
  readonly text: string
}

/** All owners use the same batch ids, learners and sessions. */
function composeBatches(learners: readonly string[], events: readonly string[], code: string): Sent[] {
  return Array.from({ length: OWNERS * BATCHES }, (_, index) => {
    const [owner, number] = [index % OWNERS, Math.floor(index / OWNERS)]
    const comments = Array.from({ length: RECORDS }, (_one, record) => `${owner}-${number}-${record}`)
    const records = comments.map((Comment, record) => ({
      ...{ Present: true, Absent: false, MinutesLate: null, SchoolAttendanceCode: code, Comment },
      ...{ Learner: learners[number * RECORDS + record], AttendableEvent: events[owner] },
    }))
    const text = batchOf(records, { batch: `batch_${number}`, changeset: `changeset_${number}` })
    const told = { created: [], notApplied: [], whole: undefined, replies: 0 }
    return { token: tokenOf(owner), text, comments, ...told }
  })
}

/** The adapter on a port of its own, in one process after another: each dies as its turn says, and the last one lives. */
function startLives(
  configFile: string,
  ends: readonly (Omit<Failpoint, 'store'> | 'killed')[],
  store: Failpoint['store'],
) {
  let replies = 0
  let kills = 0
  let current: Life
  let stopped = false
  let failure: Error | undefined
  const begin = (): void => {
    const end = ends[kills]
    const failpoint = end === undefined || end === 'killed' ? undefined : { ...end, store }
    replies = 0
    const life = startLife({ configFile, args: [], failpoint, env: {} })
    current = life
    void life.ended.then(({ signal, log }) => {
      if (stopped) return
      if (signal !== 'SIGKILL') {
        failure = new Error(`the adapter ended by itself: ${log}`)
        return
      }
      kills += 1
      begin()
    })
  }
  begin()
  return {
    ready: async () => {
      await current.ready
      if (failure !== undefined) throw failure
    },
    kills: () => kills,
    replied: () => {
      replies += 1
      if (replies === REPLIES && ends[kills] === 'killed') current.kill('SIGKILL')
    },
    close: async () => {
      stopped = true
      current.kill('SIGKILL')
      await current.ended
    },
  }
}

/** Compares a reply with what was told before. */
function check(sent: Sent, { status, type, text }: Told): void {
  if (status !== 200) {
    expect([status, text]).toEqual([
      expect.toSatisfy((one: number) => one === 503 || one === 504),
      expect.stringContaining('ADP_'),
    ])
    return
  }
  const boundary = /boundary=(\S+)/.exec(type)?.[1] ?? ''
  const parts = text.split(`--${boundary}`).slice(1, -1)
  expect(parts).toHaveLength(RECORDS)
  for (const [index, part] of parts.entries()) {
    const partStatus = Number(/HTTP\/1\.1 (\d{3})/.exec(part)?.[1])
    const before = sent.created[index]
    if (before !== undefined) expect(part).toBe(before)
    else expect([201, 503, 504]).toContain(partStatus)
    if (partStatus === 201) sent.created[index] = part
    if (partStatus === 503) sent.notApplied.push(sent.comments[index] ?? '')
  }
  if (parts.every((part) => part.includes('HTTP/1.1 201'))) {
    sent.whole ??= `${type}\n${text}`
    expect(`${type}\n${text}`).toBe(sent.whole)
  }
}

async function resendAll(url: string, store: Failpoint['store']): Promise<void> {
  const tokens = Array.from({ length: OWNERS }, (_, owner) => ({
    token: tokenOf(owner),
    domains: ['Attendance'],
  }))
  const sandbox = await startSandbox({ tokens })
  const samples = (await sandbox.json('GET', '/_sandbox/samples')).body as {
    learners: string[]
    events: string[]
    codes: { id: string }[]
  }
  const effects = async (): Promise<string[]> =>
    ((await sandbox.json('GET', '/_sandbox/effects')).body as EffectEntry[]).map(({ comment }) =>
      String(comment),
    )
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-resends-'))
  const configFile = join(folder, 'markbridge.yaml')
  const port = await freePort()
  const partners = [{ id: 'acme', match: { any: true }, v3: { readBackAfterMs: [10, 20] } }]
  const config = { listen: { port }, upstreams: { v3: { baseUrl: sandbox.url } }, journal: { url }, partners }
  writeFileSync(configFile, JSON.stringify(config))
  const ends = [{ kind: 'afterSend', nth: 9 }, { kind: 'afterCommit', nth: 6 }, 'killed'] as const
  const lives = startLives(configFile, ends, store)
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 5, headersTimeout: 0 })
  onTestFinished(async () => {
    await lives.close()
    await pool.destroy()
    rmSync(folder, { recursive: true })
  })
  const post = async ({ token, text }: Sent): Promise<Told | undefined> => {
    const headers = {
      ...text.headers,
      Authorization: `Bearer ${token}`,
      'Ocp-Apim-Subscription-Key': 'sandbox',
    }
    try {
      const reply = await pool.request({ method: 'POST', path: batchPath, headers, body: text.body })
      return {
        status: reply.statusCode,
        type: String(reply.headers['content-type']),
        text: await reply.body.text(),
      }
    } catch {
      return undefined // refused, or broken off: the client was told nothing
    }
  }
  const batches = composeBatches(samples.learners, samples.events, samples.codes[0]?.id ?? '')
  const isDone = ({ whole, replies }: Sent): boolean =>
    whole !== undefined && replies > RESENDS && lives.kills() >= ends.length
  /** One batch is never under way twice, so that "not applied" can be checked. */
  const resend = async (sent: Sent): Promise<void> => {
    if (sent.notApplied.length > 0) {
      const recorded = await effects()
      expect(sent.notApplied.filter((comment) => recorded.includes(comment))).toEqual([])
      sent.notApplied = []
    }
    const told = await post(sent)
    if (told === undefined) {
      await lives.ready()
      return
    }
    if (told.status === 200) sent.replies += 1
    lives.replied()
    check(sent, told)
  }
  const work = async (own: readonly Sent[]): Promise<void> => {
    while (!own.every(isDone)) for (const sent of own) await resend(sent)
  }
  await Promise.all(
    Array.from({ length: 5 }, (_, worker) => work(batches.filter((_one, index) => index % 5 === worker))),
  )
  const wanted = batches.flatMap(({ comments }) => comments).toSorted()
  expect((await effects()).toSorted()).toEqual(wanted)
}

describe('product 3: batches of three owners, resent while the adapter is killed', () => {
  const what = 'are answered byte for byte as at first, and each mark is written once'
  it(`SQLite: ${what}`, { timeout }, () => resendAll(journalFile().url, 'sqlite'))

  describe.skipIf(missingPostgres() !== undefined)('with a server', () => {
    let postgres: TestPostgres
    beforeAll(async () => {
      postgres = await startPostgres()
    })
    afterAll(() => postgres.close())
    it(`PostgreSQL: ${what}`, { timeout }, async () => resendAll(await postgres.createDatabase(), 'postgres'))
  })
})
