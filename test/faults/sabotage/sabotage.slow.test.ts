import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { Pool } from 'undici'
import { expect, onTestFinished, test } from 'vitest'

import type { EffectEntry } from '../../../src/sandbox/control/routes.ts'
import { createRandom } from '../../../src/sandbox/random.ts'
import { makeFolder } from '../../journal/open-sqlite.ts'
import { startSandbox } from '../../sandbox/start-sandbox.ts'
import { runs } from '../../support/long-run.ts'
import { startAdapter } from '../../support/start-adapter.ts'
import { checkHistory } from '../check/check-history.ts'
import type { Finding } from '../check/finding.ts'
import { createSequence, type Load, startLoad, usualLoad } from '../load/load.ts'
import type { Samples } from '../load/write.ts'
import { startFaultProxy } from '../proxy/fault-proxy.ts'
import { createForwardLog } from '../proxy/forwards.ts'

const RECORDS = 800
/** The number of records in the test of an adapter without a defect. `npm run test:faults` sends more. */
const SOUND = runs(300, RECORDS)

/** One request. Bodies are bytes, one character each. */
interface Exchange {
  readonly method: string
  readonly path: string
  readonly body: string
  /** Forwards the request and reads the whole answer. */
  readonly forward: () => Promise<HttpAnswer>
}

interface HttpAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

type Handler = (exchange: Exchange) => Promise<HttpAnswer>

/** Starts a proxy in front of `target`. The proxy reads each request completely, and `handle` decides what happens to the exchange. */
async function placeBetween(target: string, handle: Handler): Promise<string> {
  const pool = new Pool(target, { connections: 32 })
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const bytes = Buffer.concat(chunks)
    const { method = '', url: path = '', headers } = request
    const forward = async (): Promise<HttpAnswer> => {
      const own = { ...headers }
      for (const name of ['host', 'connection', 'transfer-encoding', 'content-length'])
        Reflect.deleteProperty(own, name)
      const reply = await pool.request({ method, path, headers: own, body: bytes })
      const text = Buffer.from(await reply.body.arrayBuffer()).toString('latin1')
      return { status: reply.statusCode, contentType: String(reply.headers['content-type']), body: text }
    }
    const result = await handle({ method, path, body: bytes.toString('latin1'), forward })
    response.writeHead(result.status, { 'Content-Type': result.contentType })
    response.end(Buffer.from(result.body, 'latin1'))
  }
  const server = createServer((request, response) => void answer(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await pool.destroy()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const passOn: Handler = ({ forward }) => forward()

/** Creates a handler between adapter and service that drops some records, whose answers it invents, and sends some records twice. */
function breakWrites(seed: number, share: number, broken: { dropped: string[]; doubled: string[] }): Handler {
  const random = createRandom(seed, 'sabotage')
  return async ({ method, path, body, forward }) => {
    const name = /"Comment":"\s*(w-\d+)/.exec(body)?.[1]
    const point = random.next()
    const isWrite = method === 'POST' && path.endsWith('/AttendanceRecords')
    if (!isWrite || name === undefined || point > 2 * share) return forward()
    if (point < share) {
      const made = body.replace(/"ExternalID":"[0-]+"/, '"ExternalID":"dddddddd-0000-4000-8000-000000000000"')
      broken.dropped.push(name)
      return { status: 201, contentType: 'application/json', body: made }
    }
    await forward()
    const reply = await forward()
    // The record counts as doubled only if the service accepted the second copy, which it may also reject.
    if (reply.status < 300) broken.doubled.push(name)
    return reply
  }
}

/** Creates a handler between client and adapter that sometimes swaps two records of a reply. */
function breakReplies(seed: number, share: number, swapped: string[]): Handler {
  const random = createRandom(seed, 'swaps')
  return async ({ forward }) => {
    const reply = await forward()
    const [one, other] = [...reply.body.matchAll(/Content-Length: \d+\r\n\r\n\{.*"Comment":"\s*(w-\d+).*\}/g)]
    if (one === undefined || other === undefined || !random.chance(share)) return reply
    swapped.push(one[1] ?? '', other[1] ?? '')
    const swap = (part: string): string => (part === one[0] ? other[0] : part === other[0] ? one[0] : part)
    return { ...reply, body: reply.body.replaceAll(/Content-Length: \d+\r\n\r\n\{.*\}/g, swap) }
  }
}

/** Creates a handler between client and adapter that sometimes adds a space to the records in the reply to a resent batch. */
function rewriteReplies(seed: number, share: number): Handler {
  const random = createRandom(seed, 'renderings')
  const known = new Set<string>()
  return async ({ body, forward }) => {
    const reply = await forward()
    const isKnown = known.has(body)
    known.add(body)
    if (!isKnown || !random.chance(share)) return reply
    const written = reply.body.replaceAll(
      /Content-Length: (\d+)(\r\n\r\n)\{/g,
      (_match, length, end) => `Content-Length: ${Number(length) + 1}${String(end)}{ `,
    )
    return { ...reply, body: written }
  }
}

/** Creates a handler between client and adapter that sometimes replaces the reply to an applied batch by a 503. */
function denyReplies(seed: number, share: number, denied: string[]): Handler {
  const random = createRandom(seed, 'denials')
  return async ({ forward }) => {
    const reply = await forward()
    const [, name] = /"Comment":"\s*(w-\d+)/.exec(reply.body) ?? []
    if (name === undefined || !random.chance(share)) return reply
    denied.push(name)
    return { status: 503, contentType: 'application/json', body: '{}' }
  }
}

/** Runs a load through a real adapter and sandbox with a handler on either side of the adapter, and returns the findings of the check. */
async function findingsBetween(
  seed: number,
  { behind = passOn, before = passOn }: { behind?: Handler; before?: Handler },
  { records = RECORDS, replayShare = 0, journal = 'none' } = {},
): Promise<{ findings: readonly Finding[]; load: Load }> {
  const sandbox = await startSandbox()
  const tick = createSequence()
  const log = createForwardLog(tick)
  const watched = await startFaultProxy({ targets: [sandbox.port], onForward: log.onForward })
  onTestFinished(() => watched.close())
  const partners = [{ id: 'default', match: { any: true }, v3: { readBackAfterMs: [20, 50] } }]
  const service = await placeBetween(watched.url, behind)
  const adapter = await startAdapter(service, { journal: { url: journal }, partners })
  const url = await placeBetween(adapter.url, before)
  const samples = (await sandbox.json('GET', '/_sandbox/samples')).body as Samples
  const load = startLoad({ ...usualLoad, seed, url, samples, tick, impatience: 0, replayShare })
  onTestFinished(() => load.close())
  await expect.poll(() => load.records() >= records, { interval: 20 }).toBe(true)
  await load.stop()
  await load.sendOpen()
  const effects = (await sandbox.json('GET', '/_sandbox/effects')).body as EffectEntry[]
  return { findings: checkHistory(load.history(), effects, { forwards: log.forwards() }).findings, load }
}

function named(findings: readonly Finding[], kind: Finding['kind']): string[] {
  return findings.flatMap((finding) => (finding.kind === kind ? [finding.of] : [])).sort()
}

test('the fault check finds nothing if the adapter has no defect', async () => {
  const { findings, load } = await findingsBetween(1, {}, { records: SOUND })
  expect(findings).toEqual([])
  expect(load.history().writes.length).toBeGreaterThanOrEqual(SOUND)
})

test('the fault check finds exactly the injected faults if the adapter drops or duplicates records, or swaps their answers', async () => {
  const broken = { dropped: [] as string[], doubled: [] as string[], swapped: [] as string[] }
  const { findings } = await findingsBetween(2, {
    behind: breakWrites(2, 0.005, broken),
    before: breakReplies(2, 0.05, broken.swapped),
  })
  expect({
    dropped: named(findings, 'lost'),
    doubled: named(findings, 'doubled'),
    swapped: named(findings, 'falseAnswer'),
    others: findings.filter(({ kind }) => !['lost', 'doubled', 'falseAnswer'].includes(kind)),
  }).toEqual({
    dropped: broken.dropped.toSorted(),
    doubled: broken.doubled.toSorted(),
    swapped: broken.swapped.toSorted(),
    others: [],
  })
  // The run must have contained faults to find.
  expect(Object.values(broken).map((names) => names.length > 0)).toEqual([true, true, true])
})

test('the fault check finds changed replies if the adapter rewrites the answer to a resent batch', async () => {
  const journal = `sqlite:${await makeFolder()}/journal.db`
  const before = rewriteReplies(3, 0.5)
  const { findings } = await findingsBetween(3, { before }, { records: 300, replayShare: 0.5, journal })
  expect(new Set(findings.map(({ kind }) => kind))).toEqual(new Set(['changedReply']))
})

test('the fault check finds false answers if the adapter answers "not applied" after it has posted', async () => {
  const journal = `sqlite:${await makeFolder()}/journal.db`
  const denied: string[] = []
  const before = denyReplies(4, 0.1, denied)
  const { findings } = await findingsBetween(4, { before }, { records: 300, journal })
  expect(new Set(findings.map(({ kind, because }) => `${kind}: ${because}`))).toEqual(
    new Set(['falseAnswer: answered not applied, but the service had it']),
  )
  expect(findings.map(({ of }) => of)).toEqual(expect.arrayContaining(denied))
})
