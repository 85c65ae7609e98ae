import { startSandbox } from '../../sandbox/start-sandbox.ts'
import { freePort } from '../../support/free-port.ts'
import { exchange } from '../../support/raw-client.ts'
import { startAdapter } from '../../support/start-adapter.ts'
import { readMessage } from './raw-message.ts'

/** Equal sandboxes, of which the test reaches one directly and two through adapters at stage `legacy`. */
export interface LegacySides {
  /** The port of a sandbox whose replies are not compared. */
  readonly spare: number
  /** Sends a request directly and through each adapter. Replaces ports and ids in the replies, and removes connection headers and dates. */
  replies(request: Buffer): Promise<readonly [direct: string, whole: string, alone: string]>
}

const partners = [{ id: 'acme', match: { any: true }, stage: 'legacy' }]

/** Starts the sandboxes, an adapter whose V3 answers (`whole`), and an adapter whose V3 is unreachable (`alone`). */
export async function startLegacySides(): Promise<LegacySides> {
  const sandboxes = await Promise.all(Array.from({ length: 4 }, () => startSandbox()))
  const [direct, behindWhole, behindAlone, spare] = sandboxes.map(({ url }) => url)
  if (direct === undefined || behindWhole === undefined || behindAlone === undefined || spare === undefined)
    throw new Error('a sandbox is missing')
  const whole = await startAdapter(spare, { v2: { baseUrl: behindWhole }, partners })
  const alone = await startAdapter(`http://127.0.0.1:${await freePort()}`, {
    v2: { baseUrl: behindAlone },
    partners,
  })
  const portOf = (url: string): number => Number(new URL(url).port)
  const targets = [portOf(direct), whole.port, alone.port] as const
  const addresses = [...targets, portOf(behindWhole), portOf(behindAlone)]
  const replyOf = async (port: number, request: Buffer): Promise<string> =>
    plain(readable(await exchange(port, addressed(request, port)), request), addresses)
  return {
    spare: portOf(spare),
    replies: async (request) => [
      await replyOf(targets[0], request),
      await replyOf(targets[1], request),
      await replyOf(targets[2], request),
    ],
  }
}

/** Rewrites Host for this port, and Connection to close. */
function addressed(request: Buffer, port: number): Buffer {
  const end = request.indexOf('\r\n\r\n')
  const head = request
    .toString('latin1', 0, end)
    .replace(/^Host: .*/im, `Host: 127.0.0.1:${port}`)
    .replaceAll(/\r\nConnection: .*/gi, '')
  return Buffer.concat([Buffer.from(`${head}\r\nConnection: close`, 'latin1'), request.subarray(end)])
}

const GUID = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/gi

/** Removes connection headers and dates, and replaces ports and ids. Ids are numbered in the order of their first occurrence. */
function plain(reply: string, ports: readonly number[]): string {
  const names = new Map<string, string>()
  const text = reply
    .replaceAll(/^(?:Date|Connection|Keep-Alive):.*\r\n/gim, '')
    .replaceAll(new RegExp(`127\\.0\\.0\\.1:(?:${ports.join('|')})`, 'g'), 'service')
    .replaceAll(GUID, (id) => {
      const known = names.get(id)
      if (known !== undefined) return known
      names.set(id, `id ${names.size}`)
      return `id ${names.size - 1}`
    })
  return text.replaceAll('//service/~v2', '//service')
}

function readable(reply: string, request: Buffer): string {
  const isPage =
    request.subarray(0, 4).toString() === 'GET ' && /^Content-Type: application\/json/im.test(reply)
  return isPage ? withoutFraming(reply) : reply
}

/** Removes Content-Length and Transfer-Encoding from a page, because rewritten links change its length or make it chunked. */
function withoutFraming(reply: string): string {
  const message = readMessage(Buffer.from(reply, 'latin1'))
  if (message === undefined) throw new Error('the reply is not whole')
  const head = message.headers.filter(([name]) => !/^(?:Content-Length|Transfer-Encoding)$/i.test(name))
  return [
    message.startLine,
    ...head.map((field) => field.join(': ')),
    '',
    message.body.toString('latin1'),
  ].join('\r\n')
}
