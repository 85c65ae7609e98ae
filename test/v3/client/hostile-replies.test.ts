import type { Socket } from 'node:net'

import { describe, expect, it, onTestFinished } from 'vitest'

import { createV3Client, createV3Reader, type PostOutcome, type ReadOutcome } from '../../../src/v3/index.ts'
import { systemClock } from '../../../src/clock.ts'
import { drip, startRawUpstream } from '../../support/raw-upstream.ts'

const credentials = { authorization: 'bearer t', subscriptionKey: 'k' }
const BUDGET_MS = 400

/** Starts a service that calls `serve` once a request begins on a connection. `closed` resolves when the client closes a connection. */
async function startRaw(serve: (socket: Socket) => void): Promise<{ url: URL; closed: Promise<undefined> }> {
  const { promise: closed, resolve } = Promise.withResolvers<undefined>()
  const { url } = await startRawUpstream((socket, seen, piece) => {
    if (seen !== piece) return
    socket.once('close', () => resolve(undefined))
    serve(socket)
  })
  return { url: new URL(url), closed }
}

function optionsFor(baseUrl: URL) {
  return {
    baseUrl,
    connections: 1,
    timeouts: { connectMs: 5_000, headersMs: 5_000, bodyMs: 5_000 },
    nowMs: Date.now,
    clock: systemClock,
  }
}

async function read(url: URL, timeoutMs: number): Promise<ReadOutcome> {
  const reader = createV3Reader(optionsFor(url))
  onTestFinished(() => reader.close())
  return reader.get('AttendanceRecords', '', credentials, undefined, timeoutMs)
}

async function post(url: URL): Promise<PostOutcome> {
  const client = createV3Client(optionsFor(url))
  onTestFinished(() => client.close())
  const writes = client.openWrites(credentials, { budgetMs: BUDGET_MS })
  return writes.post('{}')
}

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'

describe('the V3 client, for a service whose reply never ends', () => {
  const ways: [what: string, first: string, again: string][] = [
    ['the body byte by byte without end', HEAD, '1\r\n \r\n'],
    ['endless interim responses', '', 'HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n'],
    ['the headers byte by byte without end', 'HTTP/1.1 200 OK\r\nX: ', 'x'],
    ['a trailer byte by byte without end', `${HEAD}2\r\n{}\r\n0\r\nX: `, 'x'],
  ]
  it.each(ways)(
    'ends a read and a write when their budget ends if the service sends %s',
    async (_, first, again) => {
      const serve = (socket: Socket): void => {
        socket.write(first)
        drip(socket, again)
      }
      const forRead = await startRaw(serve)
      expect(await read(forRead.url, BUDGET_MS)).toEqual({ kind: 'overdue' })
      await forRead.closed
      const forWrite = await startRaw(serve)
      expect(await post(forWrite.url)).toEqual({ kind: 'unknown', reason: 'timeout' })
      await forWrite.closed
    },
  )
})

describe('the V3 client, for a service that repeats a header field', () => {
  const reply = (status: string, fields: string): string =>
    `HTTP/1.1 ${status}\r\n${fields}Content-Length: 2\r\n\r\n{}`
  const answer = async (text: string): Promise<URL> =>
    (await startRaw((socket) => void socket.write(text))).url

  it('reads a repeated Retry-After as one if the values are equal, for a write and a read', async () => {
    const url = await answer(reply('429 Too Many Requests', 'Retry-After: 7\r\nretry-after: 7\r\n'))
    expect(await read(url, 20_000)).toEqual({ kind: 'unavailable', reason: 'throttled', retryAfterMs: 7_000 })
    const other = await answer(reply('429 Too Many Requests', 'Retry-After: 7\r\nretry-after: 7\r\n'))
    expect(await post(other)).toEqual({ kind: 'notApplied', reason: 'throttled', retryAfterMs: 7_000 })
  })

  it('ignores Retry-After fields whose values differ', async () => {
    const url = await answer(reply('503 Busy', 'Retry-After: 7\r\nRetry-After: 8\r\n'))
    expect(await read(url, 20_000)).toEqual({
      kind: 'unavailable',
      reason: 'unavailable',
      retryAfterMs: undefined,
    })
  })
})

describe('the V3 client, for a service with a large reply', () => {
  /** Returns a reply with `count` spaces, each in its own chunk, before an empty JSON object. */
  const inBytes = (count: number): string => `${HEAD}${'1\r\n \r\n'.repeat(count)}2\r\n{}\r\n0\r\n\r\n`

  it('closes the connection and reports a broken page if a page exceeds 4 MiB', async () => {
    const service = await startRaw((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 31000000\r\n\r\n${' '.repeat(5_000_000)}`)
    })
    expect(await read(service.url, 20_000)).toEqual({ kind: 'broken', status: 200 })
    await service.closed
  })

  it('reads a large reply in a separate turn of the event loop', async () => {
    const body = `{"ExternalID":"x"${' '.repeat(40_000)}}`
    const service = await startRaw((socket) => {
      socket.write(`HTTP/1.1 201 Created\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    })
    const { promise: asked, resolve: ask } = Promise.withResolvers<() => void>()
    const client = createV3Client({ ...optionsFor(service.url), later: ask })
    onTestFinished(() => client.close())
    const writes = client.openWrites(credentials, { budgetMs: 20_000 })
    let isRead = false
    const outcome = writes.post('{}').finally(() => {
      expect(isRead).toBe(true)
    })
    const read = await asked
    await new Promise((resolve) => setImmediate(resolve))
    isRead = true
    read()
    expect(await outcome).toMatchObject({ kind: expect.stringMatching(/accepted|unknown/) as string })
  })

  it('uses memory in proportion to the bytes of a reply, even if each byte arrives alone', async () => {
    const service = await startRaw((socket) => {
      socket.write(inBytes(400_000))
    })
    const used = (): number => {
      const { heapUsed, external, arrayBuffers } = process.memoryUsage()
      return heapUsed + external + arrayBuffers
    }
    const before = used()
    let most = 0
    const timer = setInterval(() => (most = Math.max(most, used() - before)), 5)
    const outcome = await read(service.url, 28_000)
    clearInterval(timer)
    expect(outcome).toEqual({ kind: 'read', json: {} })
    // The limit allows for the text of the reply (2.4 MB), which this process also contains, and for garbage of earlier tests.
    expect(most).toBeLessThan(80_000_000)
  })
})
