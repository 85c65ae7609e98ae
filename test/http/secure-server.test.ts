import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { ServerOptions } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls'

import { describe, expect, it, onTestFinished } from 'vitest'

import { createSelfSigned } from '../../src/cli/self-signed.ts'
import { createOrderedServer, type HandshakeFailure } from '../../src/http/reply-order.ts'
import { replaceCertificate } from '../../src/http/secure-server.ts'
import { RawClient } from '../support/raw-client.ts'

const first = createSelfSigned(Date.now())
const second = createSelfSigned(Date.now())
const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
const trusting = ({ cert }: typeof first): ConnectionOptions => ({ ca: cert, servername: 'localhost' })

async function start(options: ServerOptions = {}, maxConnections?: number) {
  const failures: HandshakeFailure[] = []
  const answer = (): void => undefined
  const server = createOrderedServer(options, (_request, response) => response.end('served'), {
    tls: first,
    maxConnections,
    onFault: answer,
    onHandshakeFailure: (failure) => failures.push(failure),
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { server, failures, port: (server.address() as AddressInfo).port }
}

const serialOf = (socket: unknown): string => (socket as TLSSocket).getPeerCertificate().serialNumber
const serial = ({ cert }: typeof first): string => new X509Certificate(cert).serialNumber

describe('a server with a certificate', () => {
  it('closes and reports a connection that sends plain HTTP', async () => {
    const { port, failures } = await start()
    const client = await RawClient.open(port, GET)
    expect(await client.untilClosed()).not.toContain('served')
    expect(failures).toEqual([{ reason: 'plainHttp', code: 'ERR_SSL_HTTP_REQUEST' }])
  })

  it('closes and reports a connection whose handshake does not end', async () => {
    const { port, failures } = await start({ headersTimeout: 50 })
    const client = await RawClient.open(port)
    await client.untilClosed()
    expect(failures).toEqual([{ reason: 'timeout', code: 'ERR_TLS_HANDSHAKE_TIMEOUT' }])
  })

  it('refuses and reports TLS 1.1', async () => {
    const { port, failures } = await start()
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
    const socket = connect({ ...old, ...trusting(first), port, host: '127.0.0.1' })
    await once(socket, 'error')
    await expect.poll(() => failures).toMatchObject([{ reason: 'other' }])
    expect(failures[0]?.code).toContain('SSL')
  })

  it('does not report a connection that was closed before its handshake, as the connections of health probes are', async () => {
    const { port, failures } = await start()
    const probes = [await RawClient.open(port), await RawClient.open(port)]
    probes[0]?.socket.end()
    probes[1]?.reset()
    for (const probe of probes) await probe.untilClosed()
    const client = await RawClient.open(port, GET, trusting(first))
    await client.until('served')
    expect(failures).toEqual([])
  })

  it('uses a new certificate for new connections, and keeps existing connections open', async () => {
    const { server, port } = await start()
    const old = await RawClient.open(port, GET, trusting(first))
    await old.until('served')
    replaceCertificate(server, second)
    const next = await RawClient.open(port, GET, trusting(second))
    await next.until('served')
    old.send(GET)
    await old.until(/served[^]*served/)
    expect([serialOf(old.socket), serialOf(next.socket)]).toEqual([serial(first), serial(second)])
  })

  it('closes the connection whose handshake began first if too many connections are open', async () => {
    const { port } = await start({}, 2)
    const handshakes = [await RawClient.open(port), await RawClient.open(port)]
    const client = await RawClient.open(port, GET, trusting(first))
    expect(await client.until('served')).toContain('200')
    await handshakes[0]?.untilClosed()
    expect(handshakes[1]?.socket.closed).toBe(false)
  })

  it('closes connections with an incomplete handshake when it stops', async () => {
    const { server, port } = await start()
    const client = await RawClient.open(port)
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await Promise.all([closed, client.untilClosed()])
  })
})
