import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { describe, expect, it, onTestFinished } from 'vitest'

import { type ConnectionFault, createOrderedServer } from '../../src/http/reply-order.ts'
import { readMessages } from '../e2e/support/raw-message.ts'
import { createSelfSigned } from '../../src/cli/self-signed.ts'
import { RawClient } from '../support/raw-client.ts'

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
const upload = 'POST /upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'
const BROKEN = 'no chunk\r\n'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

const statusesOf = (text: string): number[] =>
  readMessages(Buffer.from(text, 'latin1')).map(({ startLine }) => Number(startLine.split(' ')[1]))

/** Creates a handler whose reply waits until the test releases it. */
function held(): { handler: Handler; release: () => void; closed: Promise<unknown> } {
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>()
  const { promise: closed, resolve } = Promise.withResolvers<unknown>()
  const handler: Handler = (_request, response) => {
    response.once('close', resolve)
    void released.then(() => response.end('held'))
  }
  return { handler, release: () => release(undefined), closed }
}

const readsBody: Handler = (request, response) => {
  request.resume().once('end', () => response.end('read'))
}

describe.each([
  { scheme: 'http', tls: undefined },
  { scheme: 'https', tls: createSelfSigned(Date.now()) },
])('a server of $scheme', ({ tls }) => {
  const open = (port: number, first?: string): Promise<RawClient> =>
    RawClient.open(port, first, tls && { ca: tls.cert, servername: 'localhost' })

  /**
   * Starts a server with a handler for each path. `asked` lists the requested paths, and `faults` the reported connection faults.
   * `closed` says of each connection that the server closed whether the connection was idle or new.
   */
  async function start(
    handlers: Readonly<Record<string, Handler>>,
    onCutOff?: Handler,
    maxConnections?: number,
  ) {
    const closed: string[] = []
    const asked: string[] = []
    const faults: ConnectionFault[] = []
    const listener: RequestListener = (request, response) => {
      const { url = '' } = request
      asked.push(url)
      request.on('error', () => undefined)
      handlers[url]?.(request, response)
    }
    const hooks = {
      onFault: (fault: ConnectionFault) => faults.push(fault),
      onCrowded: (which: string) => closed.push(which),
      maxConnections,
      ...(onCutOff && { onCutOff }),
    }
    const server = createOrderedServer({}, listener, { ...hooks, tls })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => {
      server.close()
      server.closeAllConnections()
    })
    return { port: (server.address() as AddressInfo).port, asked, faults, closed }
  }

  describe('a request whose body breaks off', () => {
    it('gets the error as its reply, after the replies to earlier requests', async () => {
      const first = held()
      const { port, faults } = await start({ '/first': first.handler, '/upload': readsBody })
      const client = await open(port, get('/first') + upload + BROKEN)
      await expect.poll(() => faults).toEqual([{ status: 400, owed: 1 }])
      first.release()
      expect(statusesOf(await client.untilClosed())).toEqual([200, 400])
    })

    it('gets the reply that onCutOff writes if the server has this hook', async () => {
      const first = held()
      const { port, faults } = await start(
        { '/first': first.handler, '/upload': readsBody },
        (_request, response) => response.writeHead(504, { 'Content-Length': 0 }).end(),
      )
      const client = await open(port, get('/first') + upload + BROKEN)
      await expect.poll(() => faults).toEqual([{ status: 400, owed: 1 }])
      first.release()
      expect(statusesOf(await client.untilClosed())).toEqual([200, 504])
    })

    it('gets no second reply if it has already been answered', async () => {
      const { port, faults } = await start({ '/upload': (_request, response) => response.writeHead(401).end('no') }) // prettier-ignore
      const client = await open(port, upload)
      await client.until('no')
      client.send(BROKEN)
      expect(statusesOf(await client.untilClosed())).toEqual([401])
      expect(faults).toEqual([{ status: 400, owed: 0 }])
    })

    it('does not interrupt a reply that has begun', async () => {
      const { port, faults } = await start({
        '/upload': (_request, response) => {
          response.write('begun')
          const timer = setInterval(() => {
            if (faults.length === 0) return
            clearInterval(timer)
            response.end('ended')
          }, 1)
        },
      })
      const client = await open(port, upload)
      await client.until('begun')
      client.send(BROKEN)
      const text = await client.untilClosed()
      expect(statusesOf(text)).toEqual([200])
      expect(text).toContain('ended')
    })
  })

  describe('an HTTP/1.0 request with Transfer-Encoding', () => {
    it.each(['', 'Connection: keep-alive\r\n'])(
      'is the last request of its connection, even with the header %j',
      async (line) => {
        const { port, asked } = await start({ '/upload': readsBody, '/smuggled': readsBody })
        const request = upload.replace('1.1', '1.0').replace('Host', `${line}Host`)
        const client = await open(port, `${request}0\r\n\r\n${get('/smuggled')}`)
        const text = await client.untilClosed()
        expect(statusesOf(text)).toEqual([200])
        expect(text).toContain('Connection: close')
        expect(asked).toEqual(['/upload'])
      },
    )
  })

  describe('the disconnection of a client', () => {
    it.each([
      ['requests', ''],
      ['a request for a tunnel', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'],
    ])(
      'closes the replies to all requests of the client, even replies that still wait, after %s',
      async (_name, tail) => {
        const replies = [held(), held(), held()]
        const ended: Handler = (request, response) => {
          replies[2]?.handler(request, response)
          response.end('ended')
        }
        const { port, asked } = await start({
          '/0': replies[0]?.handler ?? ended,
          '/1': replies[1]?.handler ?? ended,
          '/2': ended,
        })
        const client = await open(port, get('/0') + get('/1') + get('/2') + tail)
        await expect.poll(() => asked).toHaveLength(3)
        client.reset()
        await Promise.all(replies.map(({ closed }) => closed))
      },
    )

    it.each([
      ['bytes that are not HTTP', '\0'],
      ['a request for a tunnel', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'],
    ])('is noticed even if the client has sent %s', async (_name, tail) => {
      const first = held()
      const { port, faults } = await start({ '/first': first.handler })
      const client = await open(port, get('/first') + tail)
      await expect.poll(() => faults).toHaveLength(1)
      client.reset()
      await first.closed
    })
  })

  it('sends a whole reply that exceeds the buffers before it refuses a tunnel', async () => {
    const { port } = await start({
      '/large': (_request, response) => {
        let left = 200
        const write = (): void => {
          for (; left > 0; left -= 1) {
            if (!response.write(Buffer.alloc(65_536, 'x'))) {
              left -= 1
              response.once('drain', write)
              return
            }
          }
          response.end()
        }
        setImmediate(write)
      },
    })
    const client = await open(port, `${get('/large')}CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n`)
    const replies = readMessages(Buffer.from(await client.untilClosed(), 'latin1'))
    expect(replies.map(({ startLine }) => Number(startLine.split(' ')[1]))).toEqual([200, 405])
    expect(replies[0]?.body).toHaveLength(200 * 65_536)
  })

  describe('a connection beyond the limit', () => {
    const half = 'GET /first HTTP/1.1\r\nHost: x\r\nX-Un'

    it('makes the server close the connection that has been idle longest, and never a connection with a request in progress', async () => {
      const first = held()
      const { port, asked, closed } = await start(
        { '/first': first.handler, '/kept': readsBody },
        undefined,
        4,
      )
      const busy = await open(port, get('/first'))
      await expect.poll(() => asked).toEqual(['/first'])
      const idle = [await open(port), await open(port, half)]
      const crowd: RawClient[] = []
      for (let count = 0; count < 6; count += 1) crowd.push(await open(port, half))
      await Promise.all([...idle, ...crowd.slice(0, 3)].map((one) => one.untilClosed()))
      expect(closed).toEqual(Array(5).fill('idle'))
      const kept = await open(port, get('/kept'))
      expect(await kept.until('read')).toMatch(/^HTTP\/1\.1 200 /)
      first.release()
      expect(await busy.until('held')).toMatch(/^HTTP\/1\.1 200 /)
    })

    it('is closed itself if every other connection has a request in progress', async () => {
      const first = held()
      const { port, asked, closed } = await start({ '/first': first.handler }, undefined, 2)
      const busy = [await open(port, get('/first')), await open(port, get('/first'))]
      await expect.poll(() => asked).toEqual(['/first', '/first'])
      const late = await open(port, get('/first'))
      expect(await late.untilClosed()).toBe('')
      expect(closed).toEqual(['new'])
      first.release()
      for (const one of busy) await one.until('held')
    })
  })
})
