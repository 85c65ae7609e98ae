import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

import type { Answer } from './fixture.ts'
import { matchesTemplate } from './template.ts'

/** A request that reached the service. For a read, `body` is `{ GET: target }` with the decoded target. */
export interface Post {
  /** The position in the script, or -1 if the script does not have the body. */
  readonly index: number
  readonly headers: IncomingHttpHeaders
  readonly path: string
  readonly body: unknown
}

export interface ScriptedUpstream {
  readonly url: string
  readonly posts: Post[]
  /** Starts a new exchange at the beginning of the script. */
  restart(): void
  /** Sets the text that the client has read so far, for answers that wait for it. */
  clientHas(text: string): void
  close(): Promise<void>
}

/** Starts a service that gives a body of `script` the answer at the same position (default: 201 with an echo), and other bodies 500. */
export async function startUpstream(
  script: readonly unknown[],
  answers: readonly Answer[],
): Promise<ScriptedUpstream> {
  let posts: Post[] = []
  let waiting: { readonly text: string; readonly go: () => void }[] = []
  const server = createServer((request, response) => {
    void (async () => {
      const text = await readText(request)
      const body =
        request.method === 'GET'
          ? { GET: decodeURIComponent(request.url ?? '') }
          : (JSON.parse(text) as unknown)
      const used = new Set(posts.map(({ index }) => index))
      const index = script.findIndex((own, position) => !used.has(position) && matchesTemplate(body, own))
      posts.push({ index, headers: request.headers, path: request.url ?? '', body })
      const answer = answers[index] ?? {}
      const { after } = answer
      if (after !== undefined) await new Promise<void>((go) => waiting.push({ text: after, go }))
      const reply = index === -1 ? {} : (answer.body ?? echo(body, index))
      response.writeHead(answer.status ?? (index === -1 ? 500 : 201), {
        'Content-Type': 'application/json',
        ...answer.headers,
      })
      response.end(typeof reply === 'string' ? reply : JSON.stringify(reply))
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get posts() {
      return posts
    },
    restart: () => {
      posts = []
      waiting = []
    },
    clientHas: (text) => {
      for (const own of waiting.filter((candidate) => text.includes(candidate.text))) own.go()
    },
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** Returns the posted values, an id whose digits are the position (from 1), and `fabricated` (service.md 4). */
function echo(body: unknown, index: number): object {
  const id = `${String(index + 1).padStart(8, '0')}-0000-4000-8000-000000000000`
  const context = 'https://another.example/V3/$metadata#AttendanceRecords/$entity'
  return { '@odata.context': context, ...(body as object), ExternalID: id, fabricated: null }
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
