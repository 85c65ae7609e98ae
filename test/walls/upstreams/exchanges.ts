import { Agent, type IncomingHttpHeaders, request } from 'node:http'

import { createRandom, type Random } from '../../../src/sandbox/random.ts'
import { batchOf, failuresOf, flatRecord, readBatchReply } from '../../support/batch-request.ts'
import { eventOf, learnerOf } from './ids.ts'
import { MARKER } from './odd-reply.ts'
import type { OddService } from './odd-service.ts'
import { ways } from './adapter-process.ts'

/** A result that must never occur. `exchange` is the number that draws the same exchange again. */
export interface Finding {
  readonly exchange: number
  readonly what: string
  readonly detail: string
}

/** What a reply tells the client about a record, or about a change of a learner's data. */
type Claim = 'applied' | 'notApplied' | 'unknown'

/** The result of an exchange: the last claim about each record, which is judged once nothing is in progress. */
export interface Told {
  readonly exchange: number
  readonly status: number
  readonly claims: readonly { readonly learner: string | undefined; readonly claim: Claim }[]
  /** True if V2 served. V2 applies resent records again, and the adapter forwards V2's own texts. */
  readonly isRelayed: boolean
}

/** Time in milliseconds after which a waiting client reports a hang. */
const HANG_MS = 30_000
/** Time in milliseconds after which a V2 client gives up, because the adapter waits for V2's bodies longer than a short run lasts. */
const GIVE_UP_MS = 2_500
/** The number of bytes after which a client stops reading an endless reply. */
const MAX_BYTES = 2_097_152

/** A reply, or `undefined` if no complete reply arrived. */
type Reply =
  { readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string } | undefined

interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export function createClients(port: number, seed: number, concurrency: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency })
  return {
    /** Makes exchange number `exchange`. Findings that are known at its end are added to `findings`. */
    exchange: async (exchange: number, findings: Finding[]): Promise<Told> => {
      const random = createRandom(seed, `exchange ${exchange}`)
      const way = random.pick(ways)(random)
      const isRelayed = way === 'legacy'
      const find = (what: string, detail: string): void =>
        void findings.push({ exchange, what, detail: `${way}: ${detail}` })
      const drawn = draw(exchange, way, random)
      const send = async (): Promise<Reply> => {
        const reply = await post(agent, port, drawn, isRelayed ? GIVE_UP_MS : HANG_MS)
        if (reply === 'hang') {
          if (!isRelayed) find('hang', drawn.path)
          return undefined
        }
        if (reply?.status === 500 && reply.headers[MARKER] === undefined)
          find('status 500', reply.text.slice(0, 300))
        return reply
      }
      let reply = await send()
      let claims = claimsOf(drawn, reply, find)
      const isOpen = claims.some(({ claim }) => claim !== 'applied')
      // Some clients resend the same bytes if a record was not reported as applied.
      if (!isRelayed && drawn.kind === 'batch' && isOpen && random.chance(0.2)) {
        const before = claims
        reply = await send()
        const now = claimsOf(drawn, reply, find)
        const isWhole = reply?.status !== 200
        claims = before.map((earlier, at) => {
          const { learner, claim } = now[at] ?? earlier
          if (earlier.claim === 'applied' && claim !== 'applied' && !isWhole)
            find('an answer that was taken back', String(learner))
          // A rejection of the whole request describes this request, and not an earlier request with the same bytes.
          const isKept = earlier.claim === 'applied' || (isWhole && claim === 'notApplied')
          return isKept ? earlier : { learner, claim }
        })
      }
      return { exchange, status: reply?.status ?? 0, claims, isRelayed }
    },
    close: (): void => agent.destroy(),
  }
}

interface Drawn extends Sent {
  readonly kind: 'batch' | 'record' | 'read' | 'change' | 'passed'
  readonly learners: readonly string[]
}

function draw(exchange: number, way: string, random: Random): Drawn {
  const credentials = {
    'X-Way': way,
    'Ocp-Apim-Subscription-Key': `key-${exchange}`,
    Authorization: `Bearer token-${exchange}`,
  }
  const learners = Array.from({ length: 1 + random.below(4) }, (_, n) => learnerOf(exchange, n))
  const record = (learner: string | undefined): object =>
    flatRecord(0, {
      Learner: learner,
      AttendableEvent: eventOf(exchange),
      Comment: random.pick([null, 'late']),
    })
  const get = (kind: Drawn['kind'], path: string): Drawn => ({
    kind,
    method: 'GET',
    path,
    headers: credentials,
    body: '',
    learners: [],
  })
  const json = { ...credentials, 'Content-Type': 'application/json' }
  const [first] = learners
  const choices: readonly [readonly [number, () => Drawn], ...(readonly [number, () => Drawn])[]] = [
    [0.6, () => {
      const { headers, body } = batchOf(learners.map(record), { batch: `batch_${exchange}`, changeset: `changeset_${exchange}` })
      return { kind: 'batch', method: 'POST', path: '/V2/Attendance/$batch', headers: { ...credentials, ...headers }, body, learners }
    }],
    [0.1, () => ({ kind: 'record', method: 'POST', path: '/V2/Attendance/AttendanceRecords', headers: json, body: JSON.stringify(record(first)), learners: learners.slice(0, 1) })],
    [0.1, () => get('read', `/V2/Attendance/AttendanceRecords?$filter=Learner%20eq%20${first}`)],
    [0.04, () => get('read', `/V2/Attendance/AttendanceRecords(${first})`)],
    [0.04, () => get('read', `/V2/LearnerRegistations?expand=Enrolments&n=${exchange}`)],
    [0.06, () => get('passed', `/Learner/V3/LearnerPersonals?n=${exchange}`)],
    [0.06, () => ({ kind: 'change', method: 'PATCH', path: `/Learner/V3/LearnerPersonals(1)?n=${exchange}`, headers: json, body: '{"a":1}', learners: [] })],
  ] // prettier-ignore
  let left = random.next()
  const [, chosen] = choices.find(([share]) => (left -= share) < 0) ?? choices[0]
  return chosen()
}

function claimsOf(drawn: Drawn, reply: Reply, find: (what: string, detail: string) => void): Told['claims'] {
  const { kind, learners } = drawn
  const ofAll = (claim: Claim): Told['claims'] => learners.map((learner) => ({ learner, claim }))
  // The adapter is not responsible for replies that it forwards from the service.
  const isOwn = reply?.headers[MARKER] === undefined
  if (kind === 'change')
    return [
      {
        learner: undefined,
        claim: isOwn && reply !== undefined ? claimOf(reply.status, reply.text) : 'unknown',
      },
    ]
  if (kind !== 'batch' && kind !== 'record') return []
  if (reply === undefined || !isOwn) return ofAll('unknown')
  if (kind === 'record' || reply.status !== 200) return ofAll(claimOf(reply.status, reply.text))
  try {
    const parts = failuresOf(readBatchReply(reply))
    if (parts.length !== learners.length) find('parts are missing', `${parts.length} of ${learners.length}`)
    if (parts.some(({ status }) => status === 500)) find('a part with 500', JSON.stringify(parts))
    return learners.map((learner, at) => {
      const { status, codes } = parts[at] ?? { status: 0, codes: '' }
      return { learner, claim: claimOf(status, JSON.stringify(codes)) }
    })
  } catch (cause) {
    find('no batch reply', String(cause))
    return ofAll('unknown')
  }
}

function claimOf(status: number, text: string): Claim {
  if (status === 0 || status === 504 || /_UNKNOWN"|ADP_(?:JOURNAL|RESULT)_LOST/.test(text)) return 'unknown'
  return status >= 200 && status < 300 ? 'applied' : 'notApplied'
}

/** Sends a request. Returns `undefined` if no complete reply arrives. */
function post(
  agent: Agent,
  port: number,
  { method, path, headers, body }: Sent,
  withinMs: number,
): Promise<Reply | 'hang'> {
  return new Promise((resolve) => {
    const call = request({
      agent,
      port,
      host: '127.0.0.1',
      method,
      path,
      headers: { ...headers, 'Content-Length': Buffer.byteLength(body) },
    })
    const timer = setTimeout(() => end('hang'), withinMs)
    const end = (reply: Reply | 'hang'): void => {
      clearTimeout(timer)
      call.destroy()
      resolve(reply)
    }
    call.on('error', () => end(undefined))
    call.on('response', (response) => {
      const chunks: Buffer[] = []
      let size = 0
      response.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size > MAX_BYTES) end(undefined)
        else chunks.push(chunk)
      })
      response.on('error', () => end(undefined)).on('aborted', () => end(undefined))
      response.on('end', () => {
        clearTimeout(timer)
        const text = Buffer.concat(chunks).toString('utf8')
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
      })
    })
    call.end(body)
  })
}

/** Compares the answers to clients with the records that the service applied, once nothing is in progress. */
export function judge(service: OddService, { exchange, claims, isRelayed }: Told): Finding[] {
  return claims.flatMap(({ learner, claim }): Finding[] => {
    const count = learner === undefined ? service.changed(exchange) : service.applied(learner)
    const detail = `${claim}, applied ${count} times${isRelayed ? ', by V2' : ''}`
    if (count > 1) return [{ exchange, what: 'applied twice', detail }]
    if (claim === 'applied' && count === 0)
      return [{ exchange, what: 'reported as applied, but not applied', detail }]
    if (claim === 'notApplied' && count > 0)
      return [{ exchange, what: 'reported as not applied, but applied', detail }]
    return []
  })
}
