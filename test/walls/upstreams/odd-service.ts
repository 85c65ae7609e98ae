import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

import { createRandom, type Random } from '../../../src/sandbox/random.ts'
import { type RawMessage, readMessage } from '../../e2e/support/raw-message.ts'
import { exchangeIn, learnersIn, otherId } from './ids.ts'
import { oddJsonBatch, oddMultipart } from './odd-batch.ts'
import { oddError, oddJson } from './odd-json.ts'
import { type OddReply, oddReply, type Said } from './odd-reply.ts'

/** V2, V3 and the token endpoint on one URL. These endpoints answer in odd ways and record what they applied. */
export interface OddService {
  readonly url: string
  /** Returns how often the record of a learner was applied. */
  applied(learner: string): number
  /** Returns how often the request `n=` that changes a learner's data was applied. */
  changed(exchange: number): number
  readonly calls: ReadonlyMap<string, number>
  close(): void
}

/** Statuses of a service that has applied a record, and of a service that has not. Other statuses are drawn if they fit. */
const APPLIED = [201, 201, 201, 201, 201, 201, 200, 200, 202, 204, 206, 226, 299, 303, 500, 500, 502, 504, 520, 599, 600, 999] as const // prettier-ignore
const NOT_APPLIED = [400, 400, 400, 404, 405, 408, 409, 410, 413, 415, 422, 429, 429, 429, 429, 451, 499, 301, 302, 304, 307, 308, 500, 501, 502, 503, 503, 503, 504] as const // prettier-ignore
const DENIED = [401, 403] as const

/** Returns a status that does not contradict whether the service applied the record. */
function statusFor(isApplied: boolean, random: Random): number {
  if (random.chance(0.05)) {
    const any = 200 + random.below(800)
    const says = (any >= 200 && any < 300) || any >= 500
    if (isApplied ? says && any !== 501 && any !== 503 : any >= 300) return any
  }
  if (!isApplied && random.chance(0.04)) return random.pick(DENIED)
  return random.pick(isApplied ? APPLIED : NOT_APPLIED)
}

/** Statuses of a service that accepts only shorter batches. After such a status the adapter sends shorter batches for ten minutes. */
const TOO_LONG: readonly number[] = [413, 429]

/**
 * Starts the service. From exchange `longFrom` on, the service may reject a batch as too long. The reply to a call depends on the seed, the
 * exchange of the call, its endpoint and the number of earlier calls of this exchange to this endpoint.
 */
export async function startOddService(seed: number, longFrom: number): Promise<OddService> {
  const marks = new Map<string, { count: number; json: string }>()
  const changes = new Map<number, number>()
  const counts = new Map<string, number>()
  const calls = new Map<string, number>()
  const sockets = new Set<Socket>()

  const drawFor = (endpoint: string, exchange: number | string): Random => {
    const name = `${exchange} ${endpoint}`
    const call = counts.get(name) ?? 0
    counts.set(name, call + 1)
    calls.set(endpoint, (calls.get(endpoint) ?? 0) + 1)
    return createRandom(seed, `${name} ${call}`)
  }
  /** Applies a record or not, and returns a fitting answer. */
  const post = (posted: string, random: Random): Said => {
    const isApplied = random.chance(0.6)
    const [learner = ''] = learnersIn(posted)
    const json = `{"ExternalID":"${otherId(random.below(2 ** 31))}",${withoutId(posted)}`
    if (isApplied) marks.set(learner, { count: (marks.get(learner)?.count ?? 0) + 1, json })
    const status = statusFor(isApplied, random)
    const body = isApplied && status < 300 ? oddJson(json, random) : oddError(random)
    return { status, contentType: 'application/json', body }
  }
  const postBatch = (
    records: readonly string[],
    random: Random,
    isJson: boolean,
    mayBeTooLong: boolean,
  ): Said => {
    // Sometimes rejects the whole batch before any record is processed.
    if (random.chance(0.15)) {
      const drawn = statusFor(false, random)
      const status = TOO_LONG.includes(drawn) && !mayBeTooLong ? 503 : drawn
      return { status, contentType: 'application/json', body: oddError(random) }
    }
    const answers = records.map((record) => post(record, random))
    if (random.chance(0.05))
      return { status: random.pick([202, 204, 500, 502, 504]), contentType: 'text/plain', body: '' }
    return isJson ? oddJsonBatch(answers, random) : oddMultipart(answers, random)
  }
  const read = (target: string, random: Random): Said => {
    const shown = learnersIn(target).flatMap((learner) => marks.get(learner)?.json ?? [])
    const says = random.chance(0.6)
    const body = `{"value":[${shown.join()}]}`
    if (says) return { status: 200, contentType: 'application/json', body: oddJson(body, random, true) }
    return {
      status: random.pick([...NOT_APPLIED, 500]),
      contentType: 'application/json',
      body: oddError(random),
    }
  }
  const token = (random: Random): Said => {
    const lifetime = random.chance(0.98) ? 0.01 : random.pick<unknown>([1, '0.5', null, -1, 0, {}, 'x'])
    const body = JSON.stringify({ access_token: random.pick(['t', 't', 't', '', 'a b', 'x'.repeat(20_000), 5]), expires_in: lifetime }) // prettier-ignore
    if (random.chance(0.5))
      return { status: 200, contentType: 'application/json', body: oddJson(body, random, true) }
    return { status: statusFor(false, random), contentType: 'application/json', body: oddError(random) }
  }
  const change = (exchange: number, random: Random): Said => {
    const isApplied = random.chance(0.5)
    if (isApplied) changes.set(exchange, (changes.get(exchange) ?? 0) + 1)
    const status = statusFor(isApplied, random)
    return {
      status,
      contentType: 'application/json',
      body: oddJson('{"a":{"b":["http://127.0.0.1/c"]}}', random),
    }
  }
  const postV2 = (learners: readonly string[], random: Random): Said => {
    if (random.chance(0.15))
      return { status: statusFor(false, random), contentType: 'application/json', body: oddError(random) }
    const answers = learners.map((learner): Said => {
      const isApplied = random.chance(0.6)
      if (isApplied) marks.set(learner, { count: (marks.get(learner)?.count ?? 0) + 1, json: '{}' })
      const body = isApplied
        ? oddJson(`{"ExternalID":"${otherId(1)}","Learner":"${learner}"}`, random)
        : '[{"Message":"No.","ErrorCode":"X"}]'
      return { status: isApplied ? 201 : 400, contentType: 'application/json', body }
    })
    return oddMultipart(answers, random)
  }
  const answer = ({ startLine, body: bytes }: RawMessage): { said: Said; random: Random } => {
    const [method = '', target = ''] = startLine.split(' ')
    const path = decodeURIComponent(target)
    const body = bytes.toString('utf8')
    const exchange = exchangeIn(path + body)
    const [, client] = /^\/token\/(\d+)/.exec(path) ?? []
    const isV2 = path.includes('/V2/')
    if (client !== undefined) {
      const random = drawFor('token', `client ${client}`)
      return { said: token(random), random }
    }
    if (path.includes('$batch') && !isV2) {
      const isJson = body.startsWith('{')
      const random = drawFor(isJson ? 'JSON batch' : 'batch', exchange)
      return { said: postBatch(recordsIn(body, isJson), random, isJson, exchange >= longFrom), random }
    }
    if (method === 'POST' && isV2) {
      const random = drawFor('V2 write', exchange)
      return { said: postV2(learnersIn(body), random), random }
    }
    if (method === 'POST') {
      const random = drawFor('record', exchange < 0 ? 'none' : (learnersIn(body)[0] ?? ''))
      return { said: post(body, random), random }
    }
    if (method === 'PATCH') {
      const random = drawFor('change', exchange)
      return { said: change(exchange, random), random }
    }
    const random = drawFor(isV2 ? 'V2 read' : 'read', exchange)
    return { said: read(path, random), random }
  }
  const server = createServer((socket) => {
    sockets.add(socket.setNoDelay(true))
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    let received = Buffer.alloc(0)
    socket.on('data', (piece: Buffer) => {
      received = Buffer.concat([received, piece])
      const request = readMessage(received)
      if (request === undefined) return
      received = Buffer.alloc(0)
      if (request.startLine.startsWith('GET ')) {
        // A read waits for two turns, so that all writes that were sent before it are applied first, even on a connection that is not
        // accepted yet.
        setImmediate(() => setImmediate(() => send(socket, request)))
      } else send(socket, request)
    })
  })
  const send = (socket: Socket, request: RawMessage): void => {
    const { said, random } = answer(request)
    const isHead = request.startLine.startsWith('HEAD ')
    write(socket, oddReply(isHead ? { ...said, body: '' } : said, random))
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    applied: (learner) => marks.get(learner)?.count ?? 0,
    changed: (exchange) => changes.get(exchange) ?? 0,
    calls,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Returns the JSON of a record without its opening brace and its id. */
const withoutId = (posted: string): string => posted.slice(1).replace(/^"ExternalID":"[^"]*",/, '')

/** Returns the JSON of each record of a `$batch`. */
function recordsIn(body: string, isJson: boolean): string[] {
  if (!isJson) return body.split('\r\n').filter((line) => line.startsWith('{'))
  const { requests } = JSON.parse(body) as { requests: { body: unknown }[] }
  return requests.map((request) => JSON.stringify(request.body))
}

/** Writes a reply piece by piece, each piece in its own turn of the event loop. */
function write(socket: Socket, { pieces, end }: OddReply): void {
  const [first, ...others] = pieces
  if (socket.destroyed) return
  if (first !== undefined && first.length > 0) socket.write(first)
  if (end === 'endless' && others.length <= 1) {
    const [again = Buffer.alloc(1)] = others
    const timer = setInterval(() => {
      if (socket.destroyed) clearInterval(timer)
      else if (!socket.writableNeedDrain) socket.write(again)
    }, 5)
    return
  }
  if (others.length > 0) setImmediate(() => write(socket, { pieces: others, end }))
  else if (end === 'close') socket.end()
  else if (end === 'reset') setImmediate(() => socket.resetAndDestroy())
}
