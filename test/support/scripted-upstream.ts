import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { onTestFinished } from 'vitest'

/** A complete request as it reached the upstream. */
export interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly body: string
  /** The position among the requests, from 0. */
  readonly index: number
}

export type Answer = (seen: SeenRequest, response: ServerResponse) => void | Promise<void>

export interface Upstream {
  readonly url: string
  readonly port: number
  /** Every request, in the order in which the last bytes of the requests arrived. */
  readonly seen: SeenRequest[]
  /** Returns the number of connections that were opened so far. */
  connections(): number
  /** Resolves once `count` requests have arrived. */
  arrived(count: number): Promise<void>
  close(): Promise<void>
}

/** Starts a V3 service with answers that the test writes. The service listens on its own port until the end of the test. */
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

/** Works like `startUpstream`, but `serve` reads the request itself, for bodies that are not kept and for broken requests. */
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

/** Creates an answer with this status and body. */
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

/** Answers 503 with a Retry-After beyond the budget of a batch. */
export const unavailable: Answer = replyWith(503, '', { 'Retry-After': '100' })

/**
 * Answers 201 with the posted record and an id, as the service does (service.md 4). A read of one learner and one event returns one row
 * with both ids.
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

/** Builds the body of the reply of `echoRecord`. The id in the body contains the position of the request. */
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

/**
 * Creates an answer that is held until the test releases it, for the requests that match `holds`. `release` releases a number of answers,
 * or all answers.
 */
export function holdAnswers(holds: (seen: SeenRequest) => boolean = () => true): {
  answer: Answer
  release: (count?: number) => void
  held: () => number
} {
  const kept: (() => void)[] = []
  let open = 0
  return {
    answer: (seen, response) => {
      const send = (): void => void echoRecord(seen, response)
      if (open === 0 && holds(seen)) return void kept.push(send)
      if (holds(seen)) open -= 1
      send()
    },
    release: (count = Number.POSITIVE_INFINITY) => {
      const now = kept.splice(0, count)
      open += count - now.length
      for (const send of now) send()
    },
    held: () => kept.length,
  }
}

/** Returns the POSTs among requests. */
export const postsOf = (seen: readonly SeenRequest[]): SeenRequest[] =>
  seen.filter(({ method }) => method === 'POST')

/** Creates a service that accepts every mark and returns it when its learner is read. `shown` changes a mark as the service would. */
export function keepMarks(shown: (json: string) => string = (json) => json): Answer {
  const marks = new Map<string, string>()
  return (seen, response) => {
    if (seen.method === 'POST') {
      marks.set(/"Attendee":\{"ExternalID":"([^"]+)"/.exec(seen.body)?.[1] ?? '', shown(echoOf(seen)))
      return echoRecord(seen, response)
    }
    const [, learner = ''] = /Attendee\/ExternalID eq (\S+)/.exec(decodeURIComponent(seen.url)) ?? []
    return replyWith(200, `{"value":[${marks.get(learner) ?? ''}]}`)(seen, response)
  }
}
