import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { Pool } from 'undici'

import { createRandom } from '../../../src/sandbox/random.ts'

/** What was broken on purpose: the names of the writes. */
export interface Sabotage {
  readonly dropped: string[]
  readonly doubled: string[]
  readonly swapped: string[]
}

/** Places a proxy between two sides that buffers every exchange whole; `handle` decides what happens. */
export async function placeBetween(
  target: string,
  handle: (exchange: Exchange) => Promise<HttpAnswer>,
): Promise<{ url: string; close: () => Promise<void> }> {
  const pool = new Pool(target, { connections: 32 })
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString('latin1')
    const { method = '', url: path = '', headers } = request
    const forward = async (): Promise<HttpAnswer> => {
      const own = { ...headers }
      for (const name of ['host', 'connection', 'transfer-encoding', 'content-length'])
        Reflect.deleteProperty(own, name)
      const reply = await pool.request({ method, path, headers: own, body: Buffer.from(body, 'latin1') })
      const text = Buffer.from(await reply.body.arrayBuffer()).toString('latin1')
      return { status: reply.statusCode, contentType: String(reply.headers['content-type']), body: text }
    }
    const result = await handle({ method, path, body, forward })
    response.writeHead(result.status, { 'Content-Type': result.contentType })
    response.end(Buffer.from(result.body, 'latin1'))
  }
  const server = createServer((request, response) => void answer(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await pool.destroy()
    },
  }
}

/** One request; bodies are bytes, one character each. */
export interface Exchange {
  readonly method: string
  readonly path: string
  readonly body: string
  /** Sends the request on and reads the answer whole. */
  readonly forward: () => Promise<HttpAnswer>
}

export interface HttpAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

/** Between adapter and service: every so often a record is dropped behind a made-up answer, or sent twice. */
export function breakWrites(
  seed: number,
  share: number,
  sabotage: Sabotage,
): (exchange: Exchange) => Promise<HttpAnswer> {
  const random = createRandom(seed, 'sabotage')
  return async ({ method, path, body, forward }) => {
    const name = /"Comment":"\s*(w-\d+)/.exec(body)?.[1]
    const point = random.next()
    if (
      method !== 'POST' ||
      !path.endsWith('/AttendanceRecords') ||
      name === undefined ||
      point > 2 * share
    ) {
      return forward()
    }
    if (point < share) {
      const made = body.replace(/"ExternalID":"[0-]+"/, '"ExternalID":"dddddddd-0000-4000-8000-000000000000"')
      sabotage.dropped.push(name)
      return { status: 201, contentType: 'application/json', body: made }
    }
    await forward()
    const reply = await forward()
    // Only now: the adapter may have read the first one back meanwhile, and the run may end before the second has arrived. One that the
    // service refuses is not recorded at all.
    if (reply.status < 300) sabotage.doubled.push(name)
    return reply
  }
}

/** Between client and adapter: every so often two records of a reply change places. */
export function breakReplies(
  seed: number,
  share: number,
  sabotage: Sabotage,
): (exchange: Exchange) => Promise<HttpAnswer> {
  const random = createRandom(seed, 'swaps')
  return async ({ forward }) => {
    const reply = await forward()
    const [one, other] = [...reply.body.matchAll(/Content-Length: \d+\r\n\r\n\{.*"Comment":"\s*(w-\d+).*\}/g)]
    if (one === undefined || other === undefined || !random.chance(share)) return reply
    sabotage.swapped.push(one[1] ?? '', other[1] ?? '')
    const swap = (part: string): string => (part === one[0] ? other[0] : part === other[0] ? one[0] : part)
    return { ...reply, body: reply.body.replaceAll(/Content-Length: \d+\r\n\r\n\{.*\}/g, swap) }
  }
}

/** Between client and adapter: every so often an answer that came before is written anew, with a blank more. */
export function renderAnew(seed: number, share: number): (exchange: Exchange) => Promise<HttpAnswer> {
  const random = createRandom(seed, 'renderings')
  const known = new Set<string>()
  return async ({ body, forward }) => {
    const reply = await forward()
    const isKnown = known.has(body)
    known.add(body)
    if (!isKnown || !random.chance(share)) return reply
    return {
      ...reply,
      body: reply.body.replaceAll(
        /Content-Length: (\d+)(\r\n\r\n)\{/g,
        (_match, length, end) => `Content-Length: ${Number(length) + 1}${String(end)}{ `,
      ),
    }
  }
}

/** Between client and adapter: every so often a batch that was applied is turned away as if it had not been. */
export function denyReplies(
  seed: number,
  share: number,
  denied: string[],
): (exchange: Exchange) => Promise<HttpAnswer> {
  const random = createRandom(seed, 'denials')
  return async ({ forward }) => {
    const reply = await forward()
    const [, name] = /"Comment":"\s*(w-\d+)/.exec(reply.body) ?? []
    if (name === undefined || !random.chance(share)) return reply
    denied.push(name)
    return { status: 503, contentType: 'application/json', body: '{}' }
  }
}

/** Between adapter and service: the comments of marks that are read are none that a service makes of those that were sent. */
export function disguiseReads(): (exchange: Exchange) => Promise<HttpAnswer> {
  return async ({ method, path, forward }) => {
    const reply = await forward()
    if (method !== 'GET' || !path.includes('/AttendanceRecords')) return reply
    const body = reply.body.replaceAll('"Comment":"', '"Comment":"not this one: ')
    return { ...reply, body: body.replaceAll('"RecordedOn":"20', '"RecordedOn":"19') }
  }
}
