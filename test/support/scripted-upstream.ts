import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { onTestFinished } from 'vitest'

/** A request as it reached the upstream, whole. */
export interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly body: string
  /** Position among the requests, from 0. */
  readonly index: number
}

export type Answer = (seen: SeenRequest, response: ServerResponse) => void | Promise<void>

export interface Upstream {
  readonly url: string
  readonly port: number
  /** Every request, in the order in which its last byte came. */
  readonly seen: SeenRequest[]
  /** Connections that were opened so far. */
  connections(): number
  /** Resolves once `count` requests have come. */
  arrived(count: number): Promise<void>
  close(): Promise<void>
}

/** A V3 service whose every answer the test writes; it listens on a port of its own until the end of the test. */
export async function startUpstream(answer: Answer = echoRecord): Promise<Upstream> {
  return startRawUpstream((request, response, seen, arrive) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => undefined)
    request.on('end', () => {
      const { method = '', url = '', headers, rawHeaders } = request
      const body = Buffer.concat(chunks).toString('latin1')
      const own = { method, url, headers, rawHeaders, body, index: seen.length }
      arrive(own)
      void answer(own, response)
    })
  })
}

/** As `startUpstream`, but `serve` reads the request itself: for bodies that are not to be kept, and for broken ones. */
export async function startRawUpstream(
  serve: (
    request: IncomingMessage,
    response: ServerResponse,
    seen: SeenRequest[],
    arrive: (seen: SeenRequest) => void,
  ) => void,
): Promise<Upstream> {
  const seen: SeenRequest[] = []
  let connections = 0
  const waiting: { count: number; resolve: () => void }[] = []
  const arrive = (own: SeenRequest): void => {
    seen.push(own)
    for (const { count, resolve } of waiting) if (seen.length >= count) resolve()
  }
  const server = createServer((request, response) => {
    serve(request, response, seen, arrive)
  })
  server.on('connection', () => (connections += 1))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = async (): Promise<void> => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  onTestFinished(close)
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    seen,
    connections: () => connections,
    arrived: (count) =>
      new Promise((resolve) => {
        if (seen.length >= count) resolve()
        else waiting.push({ count, resolve })
      }),
    close,
  }
}

/** Answers with one status and body. */
export function replyWith(
  status: number,
  body: string | object = '',
  headers: Readonly<Record<string, string>> = {},
): Answer {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return (_seen, response) => {
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(text)
  }
}

/**
 * Answers 201 with the posted record and an id of its own, as the service does (service.md 4). A read of one learner and event
 * finds a row of them.
 */
export const echoRecord: Answer = (seen, response) => {
  if (seen.method === 'GET') {
    const [Attendee, Event] = [...decodeURIComponent(seen.url).matchAll(/ExternalID eq (\S+)/g)].map(
      ([, ExternalID]) => ({ ExternalID }),
    )
    void replyWith(200, { value: [{ Attendee, Event }] })(seen, response)
    return
  }
  response.writeHead(201, { 'Content-Type': 'application/json' }).end(echoOf(seen))
}

/** The body that `echoRecord` answers with: the id counts the requests. */
export function echoOf(seen: SeenRequest): string {
  const posted = JSON.parse(Buffer.from(seen.body, 'latin1').toString('utf8')) as object
  const id = `eeeeeeee-0000-4000-8000-${String(seen.index).padStart(12, '0')}`
  return JSON.stringify({
    '@odata.context': 'http://elsewhere/$metadata',
    ...posted,
    ExternalID: id,
    fabricated: null,
  })
}
