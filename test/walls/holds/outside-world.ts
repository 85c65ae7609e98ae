/** A thread that plays the service and the clients of an adapter, so that their work does not count for the adapter's thread. */
import { Agent, createServer, request as startRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isMainThread, parentPort } from 'node:worker_threads'

export interface OutsideRequest {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | undefined
}

/** Requests that the thread sends all at once, while another client, the neighbour, repeatedly requests `/healthz`. */
export interface OutsideRun {
  readonly port: number
  readonly requests: readonly OutsideRequest[]
  /** The reply of V3 to a GET, or `undefined` for an empty page. */
  readonly page: Uint8Array | undefined
  /** True if V3 sends its reply in chunks of one byte. */
  readonly drips: boolean
}

/** The reply to one request. `text` is cut after `MAX_TEXT` characters. `length` counts the whole text. */
export interface OutsideReply {
  readonly status: number
  readonly text: string
  readonly length: number
}

export interface OutsideResult {
  readonly replies: readonly OutsideReply[]
  /** The number of the neighbour's requests that the adapter answered during the run. */
  readonly neighbours: number
}

const MAX_TEXT = 300
const EMPTY = Buffer.from('{"value":[]}')
const NO_ID = /"ExternalID":"0[-0]*"/
const agent = new Agent({ keepAlive: true })
let run: Pick<OutsideRun, 'page' | 'drips'> = { page: undefined, drips: false }

function send(port: number, { method, path, headers, body }: OutsideRequest): Promise<OutsideReply> {
  return new Promise((resolve) => {
    const length = { 'Content-Length': body?.length ?? 0 }
    const outgoing = startRequest(
      { host: '127.0.0.1', port, method, path, agent, headers: { ...headers, ...length } },
      (reply) => {
        const answer = { status: reply.statusCode ?? 0, text: '', length: 0 }
        reply.on('data', (chunk: Buffer) => {
          const room = MAX_TEXT - answer.text.length
          if (room > 0) answer.text += chunk.toString('latin1', 0, room)
          answer.length += chunk.length
        })
        reply.on('close', () => resolve(answer))
      },
    )
    outgoing.on('error', ({ message }) => resolve({ status: 0, text: message, length: 0 }))
    outgoing.end(body)
  })
}

async function runOutside({ port, requests, ...answers }: OutsideRun): Promise<OutsideResult> {
  run = answers
  let neighbours = 0
  let ended = false
  const neighbour = async (): Promise<void> => {
    while (!ended) {
      const { status } = await send(port, { method: 'GET', path: '/healthz', headers: {}, body: undefined })
      if (status === 200) neighbours += 1
    }
  }
  const asking = neighbour()
  const replies = await Promise.all(requests.map((request) => send(port, request)))
  ended = true
  await asking
  return { replies, neighbours }
}

if (!isMainThread) {
  const server = createServer({ maxHeaderSize: 262_144 }, (incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const isPost = incoming.method === 'POST'
      response.writeHead(isPost ? 201 : 200, { 'Content-Type': 'application/json' })
      if (isPost) {
        // The reply repeats the record, so that it is as large as the record.
        response.end(
          Buffer.concat(chunks)
            .toString()
            .replace(NO_ID, '"ExternalID":"eeeeeeee-0000-4000-8000-000000000000"'),
        )
      } else if (run.drips) {
        for (const byte of run.page ?? EMPTY) response.write(Uint8Array.of(byte))
        response.end()
      } else response.end(run.page ?? EMPTY)
    })
  })
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1', () => {
    parentPort?.postMessage((server.address() as AddressInfo).port)
  })
  parentPort?.on('message', (wanted: OutsideRun) => {
    void runOutside(wanted).then((result) => parentPort?.postMessage(result))
  })
}
