import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectSecurely, type ConnectionOptions } from 'node:tls'

import { onTestFinished } from 'vitest'

/** A raw connection, which sends exactly the bytes of the test and keeps every byte that arrives. */
export class RawClient {
  /** The socket, which is encrypted if the client was opened with `tls`. */
  readonly socket: Socket
  private readonly raw: Socket
  private received = ''
  private readonly closing: Promise<void>

  private constructor(raw: Socket, socket: Socket) {
    this.raw = raw
    this.socket = socket
    socket.on('data', (chunk: Buffer) => (this.received += chunk.toString('latin1')))
    socket.on('error', () => undefined) // A reset counts as a close. The test checks the bytes before it.
    this.closing = new Promise((resolve) => {
      socket.once('close', () => {
        resolve()
      })
    })
  }

  /** Opens a connection that is destroyed at the end of the test. `first` is sent at once, with `tls` once the handshake is complete. */
  static async open(port: number, first?: string | Buffer, tls?: ConnectionOptions): Promise<RawClient> {
    const raw = connect(port, '127.0.0.1')
    await once(raw, 'connect')
    onTestFinished(() => {
      raw.destroy()
    })
    const socket = tls === undefined ? raw : connectSecurely({ ...tls, socket: raw })
    const client = new RawClient(raw, socket)
    if (socket !== raw)
      await Promise.race([once(socket, 'secureConnect').catch(() => undefined), client.closing])
    if (first !== undefined) client.send(first)
    return client
  }

  /** Everything that has arrived so far, one character per byte. */
  get text(): string {
    return this.received
  }

  /** Resets the connection, as an operating system does when the client program crashes. */
  reset(): void {
    this.raw.resetAndDestroy()
  }

  send(text: string | Buffer): void {
    this.socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text)
  }

  /** Resolves with everything that has arrived as soon as it contains `wanted`. Throws if the connection closes before. */
  async until(wanted: string | RegExp): Promise<string> {
    const found = (): boolean =>
      typeof wanted === 'string' ? this.received.includes(wanted) : wanted.test(this.received)
    while (!found()) {
      if (this.socket.closed)
        throw new Error(`The connection was closed before ${String(wanted)} arrived: ${this.received}`)
      await Promise.race([once(this.socket, 'data'), this.closing])
    }
    return this.received
  }

  /** Resolves with everything that has arrived once the other side has closed the connection. */
  async untilClosed(): Promise<string> {
    await this.closing
    return this.received
  }
}

/** Sends one request and reads until the connection closes. The caller must ask for `Connection: close`. */
export async function exchange(port: number, request: string | Buffer): Promise<string> {
  const client = await RawClient.open(port, request)
  return client.untilClosed()
}

const credentials = 'Ocp-Apim-Subscription-Key: client-key\r\nAuthorization: bearer client-token\r\n'

/** Returns the text of a request with the client's credentials. `lines` are additional headers, each with its line end. */
export function requestText(start: string, lines = '', body = ''): string {
  return `${start} HTTP/1.1\r\nHost: adapter.test\r\n${credentials}${lines}\r\n${body}`
}
