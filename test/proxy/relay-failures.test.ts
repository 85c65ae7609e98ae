import type { Socket } from 'node:net'

import { describe, expect, it } from 'vitest'

import type { WireReply } from '../../src/compare/wire-exchange.ts'
import { AdapterError } from '../../src/errors.ts'
import { exchange, RawClient, requestText } from '../support/raw-client.ts'
import { replyWithBytes, startRawUpstream } from '../support/raw-upstream.ts'
import { startRelay } from './start-relay.ts'

const close = 'Connection: close\r\n'
const get = requestText('GET /V2/x', close)
const post = requestText('POST /V2/x', `${close}Content-Length: 2\r\n`, 'ab')
const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

describe('the relay, when V2 fails', () => {
  it.each([
    ['GET', get, 503, 'lost'],
    ['POST', post, 504, 'lost'],
  ])(
    'ends a %s immediately if V2 closes the connection without a reply',
    async (_method, request, status, kind) => {
      const upstream = await startRawUpstream((socket) => socket.end())
      const relay = await startRelay(upstream.url, { timeoutMs: 60_000 })
      expect(await exchange(relay.port, request)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
      expect(await relay.outcome()).toMatchObject({ kind })
      expect(relay.calls).toMatchObject([{ status: undefined }])
      expect(relay.log.join('')).toContain('"reason":"lost"')
    },
  )

  it('ends a write with a timeout if V2 does not read the upload', async () => {
    const upstream = await startRawUpstream((socket) => socket.pause())
    const relay = await startRelay(upstream.url)
    const client = await RawClient.open(relay.port)
    const size = 50_000_000
    client.send(requestText('POST /V2/x', `Content-Length: ${size}\r\n`))
    client.send(Buffer.alloc(size))
    expect(await client.until('}')).toMatch(/^HTTP\/1\.1 504 [^]*ADP_V2_OUTCOME_UNKNOWN/)
  })

  it('closes the connection of the client if V2 pauses for too long within the body of the reply', async () => {
    const upstream = await startRawUpstream(replyWithBytes('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc'))
    const relay = await startRelay(upstream.url)
    expect(await exchange(relay.port, get)).toMatch(/abc$/)
    expect(await relay.outcome()).toMatchObject({ kind: 'brokenReply', status: 200 })
    expect(relay.log.join('')).toContain('"reason":"brokenReply"')
  })
})

describe('a client that disconnects from the relay', () => {
  it.each([
    ['a read', get],
    ['a write', post],
  ])('makes the relay end the call to V2 for %s', async (_name, request) => {
    const ended = Promise.withResolvers<undefined>()
    const upstream = await startRawUpstream((socket) => {
      socket.once('close', () => ended.resolve(undefined))
    })
    const relay = await startRelay(upstream.url, { timeoutMs: 60_000 })
    const client = await RawClient.open(relay.port, request)
    await upstream.until('\r\n\r\n')
    client.socket.destroy()
    await ended.promise
    expect(await relay.outcome()).toMatchObject({ kind: 'lost' })
    expect(relay.log).toEqual([])
  })

  it('does not make the relay end the call to V2 if the write has the option keepGoing', async () => {
    const kept = Promise.withResolvers<WireReply>()
    const answer = Promise.withResolvers<() => void>()
    const upstream = await startRawUpstream((socket) => {
      answer.resolve(() => socket.write(ok))
    })
    const call = { body: Buffer.from('ab'), keepGoing: true, captureBytes: 100, onReplyEnd: kept.resolve }
    const relay = await startRelay(upstream.url, { timeoutMs: 60_000, call })
    const client = await RawClient.open(relay.port, post)
    const reply = await answer.promise
    await upstream.until('ab')
    client.socket.destroy()
    await client.untilClosed()
    // Waits for the reply to a later request, by which time the relay has seen the first client disconnect.
    await exchange(relay.port, 'GET / HTTP/1.1\r\n\r\n')
    reply()
    const { status, reason, fields, body } = await kept.promise
    expect([status, reason, fields, body?.toString()]).toEqual([200, 'OK', ['Content-Length', '2'], 'ok'])
    expect(await relay.outcome()).toMatchObject({ kind: 'answered', status: 200 })
  })

  it.each(['before', 'after'])(
    'does not lift the timeout for an endless reply of V2 to a write with keepGoing: disconnects %s the head',
    async (when) => {
      const head = Promise.withResolvers<() => void>()
      const upstream = await startRawUpstream((socket) => {
        head.resolve(() => {
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nx')
          const timer = setInterval(() => socket.write('x'), 20)
          socket.on('error', () => undefined).once('close', () => clearInterval(timer))
        })
      })
      const call = { body: Buffer.from('ab'), keepGoing: true, captureBytes: 100_000 }
      const relay = await startRelay(upstream.url, { call })
      const client = await RawClient.open(relay.port, post)
      const begin = await head.promise
      if (when === 'after') {
        begin()
        await client.until('x')
      }
      client.socket.destroy()
      await client.untilClosed()
      if (when === 'before') begin()
      expect(await relay.outcome()).toMatchObject({ kind: 'brokenReply', status: 200 })
    },
  )

  it('makes the relay end the call to V2, even for a write with keepGoing, if the upload is incomplete', async () => {
    const ended = Promise.withResolvers<undefined>()
    const upstream = await startRawUpstream((socket) => {
      socket.once('close', () => ended.resolve(undefined))
    })
    const relay = await startRelay(upstream.url, { timeoutMs: 60_000, call: { keepGoing: true } })
    const client = await RawClient.open(relay.port)
    client.send(requestText('POST /V2/x', 'Content-Length: 99\r\n', 'abc'))
    await upstream.until('abc')
    client.socket.destroy()
    await ended.promise
    expect(await relay.outcome()).toMatchObject({ kind: 'lost' })
  })

  it('makes the relay drop a request that is still queued', async () => {
    const upstream = await startRawUpstream(() => undefined)
    const relay = await startRelay(upstream.url, { connections: 1, timeoutMs: 60_000 })
    await RawClient.open(relay.port, get)
    await upstream.until('\r\n\r\n')
    const second = await RawClient.open(relay.port, get)
    await relay.outcomeStarted(1)
    second.socket.destroy()
    expect(await relay.outcome(1)).toMatchObject({ kind: 'notSent' })
    expect(relay.refusals).toEqual(['gone'])
    expect(upstream.seen.length).toBe(1)
  })
})

describe('the relay with no free connection to V2', () => {
  it('lets a request wait, and then refuses the request if no connection becomes free', async () => {
    const upstream = await startRawUpstream(() => undefined)
    const relay = await startRelay(upstream.url, { connections: 1, acquireMs: 50, timeoutMs: 60_000 })
    const first = await RawClient.open(relay.port, get)
    await upstream.until('\r\n\r\n')
    expect(await exchange(relay.port, post)).toMatch(/^HTTP\/1\.1 503 [^]*ADP_OVERLOADED/)
    expect(relay.refusals).toEqual(['deadline'])
    expect(relay.relays.held()).toBe(1)
    first.socket.destroy()
    await relay.outcome(0)
    expect(relay.relays.held()).toBe(0)
  })
})

describe('a stage that changes before the relay sends the first byte of a write', () => {
  /** Returns a stage that the test can change, and a call that refuses to send once the stage is no longer current. */
  const changing = () => {
    const stage = { isCurrent: true }
    const beforeSend = (): void => {
      if (!stage.isCurrent) throw new AdapterError('ADP_STAGE_UNKNOWN', 'Nothing was sent.')
    }
    return { stage, call: { body: Buffer.from('ab'), beforeSend } }
  }
  const refused = { kind: 'notSent', error: { code: 'ADP_STAGE_UNKNOWN' } }

  it('stops a write that waits for a connection', async () => {
    const sockets: Socket[] = []
    const upstream = await startRawUpstream((socket) => void sockets.push(socket))
    const { stage, call } = changing()
    const relay = await startRelay(upstream.url, { connections: 1, timeoutMs: 5_000, call })
    const first = exchange(relay.port, post)
    await upstream.until('\r\n\r\nab')
    const second = exchange(relay.port, post)
    await relay.outcomeStarted(1)
    stage.isCurrent = false
    sockets[0]?.write(ok)
    expect(await first).toMatch(/^HTTP\/1\.1 200 /)
    expect(await second).toMatch(/^HTTP\/1\.1 503 [^]*ADP_STAGE_UNKNOWN/)
    expect(await relay.outcome(1)).toMatchObject(refused)
    expect(upstream.seen.join('').match(/POST/g)).toHaveLength(1)
  })

  it('stops a write whose connection opened after the change', async () => {
    const upstream = await startRawUpstream(replyWithBytes(ok))
    const { stage, call } = changing()
    const relay = await startRelay(upstream.url, { timeoutMs: 5_000, call })
    const reply = exchange(relay.port, post)
    await relay.outcomeStarted(0)
    stage.isCurrent = false
    expect(await reply).toMatch(/^HTTP\/1\.1 503 [^]*ADP_STAGE_UNKNOWN/)
    expect(await relay.outcome()).toMatchObject(refused)
    expect(upstream.seen.join('')).toBe('')
  })
})

describe('an upload through the relay that the client abandons', () => {
  it.each([
    ['not applied if nothing was sent to V2', 'POST', 0, 'ADP_SLOW_CLIENT'],
    ['possibly applied if a part was sent to V2', 'POST', 70_000, 'ADP_V2_OUTCOME_UNKNOWN'],
  ])('is reported as %s', async (_name, method, bytes, code) => {
    const upstream = await startRawUpstream(() => undefined)
    const relay = await startRelay(upstream.url, { timeoutMs: 60_000 })
    const client = await RawClient.open(relay.port)
    client.send(requestText(`${method} /V2/x`, 'Content-Length: 99999\r\n', 'x'.repeat(bytes)))
    await relay.outcomeStarted(0)
    if (bytes > 0) await upstream.until('x')
    const error = relay.giveUp(0)
    expect(error?.code).toBe(code)
    client.socket.destroy()
    expect(['lost', 'notSent']).toContain((await relay.outcome()).kind)
  })
})

describe("the relay's captured copy of a reply", () => {
  const large = `HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`

  it('is complete before the client receives the last byte', async () => {
    const upstream = await startRawUpstream(replyWithBytes(large))
    const kept = Promise.withResolvers<undefined>()
    const release = Promise.withResolvers<undefined>()
    const onReplyEnd = async ({ body }: WireReply): Promise<void> => {
      expect(body?.length).toBe(200_000)
      kept.resolve(undefined)
      await release.promise
    }
    const relay = await startRelay(upstream.url, { call: { captureBytes: 200_000, onReplyEnd } })
    const client = await RawClient.open(relay.port, get)
    await kept.promise
    expect(client.text.split('\r\n\r\n')[1]?.length ?? 0).toBeLessThan(200_000)
    release.resolve(undefined)
    const got = await client.untilClosed()
    expect(got.split('\r\n\r\n')[1]).toBe('x'.repeat(200_000))
  })

  it('is dropped if the reply is too large, but the client still gets the whole reply', async () => {
    const upstream = await startRawUpstream(replyWithBytes(large))
    const relay = await startRelay(upstream.url, { call: { captureBytes: 100, onReplyEnd: () => undefined } })
    expect((await exchange(relay.port, get)).split('\r\n\r\n')[1]?.length).toBe(200_000)
    expect(await relay.outcome()).toMatchObject({ kind: 'answered', reply: { body: undefined } })
  })
})
