import type { Clock } from '../../clock.ts'
import { AdapterError } from '../../errors.ts'
import type { Authorisation, Client } from '../../partners/partner.ts'
import { readMark } from '../../reads/read-mark.ts'
import { readPage } from '../../reads/read-page.ts'
import type { ReadContext, ReadRequest } from '../../reads/read-request.ts'
import type { ReadSession } from '../../reads/read-upstream.ts'
import type { Side } from '../../rollout/stage.ts'
import type { CallBudget, WholeReader } from '../../upstream/index.ts'
import type { PaceRefusal } from './pace.ts'

/** A read that a comparison sends to V2 or V3, with the credentials of the client whose exchange is compared. */
export interface AskedRead {
  readonly client: Client
  readonly kind: 'filter' | 'key' | 'registrations'
  /** The path and query as a V2 client would write them. */
  readonly path: string
  readonly query: string
  readonly accept: string
  readonly prefer: string
}

export const MARKS_PATH = '/V2/Attendance/AttendanceRecords'

/**
 * `unknown`: the service did not answer, or rejected the credentials. `unsent`: no request was sent, or the adapter stopped before the
 * answer.
 */
export type SideAnswer =
  | { readonly kind: 'answered'; readonly status: number; readonly text: string }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'unsent'; readonly reason: PaceRefusal | 'stopped' }

/** Asks V2 or V3 for the answer that a V2 client would receive. Never rejects. */
export type AskSide = (read: AskedRead, timeMs: number) => Promise<SideAnswer>

export interface AskOptions {
  /**
   * The read path of the adapter. It has separate connections, so that a waiting comparison does not occupy a connection that clients need.
   */
  readonly reads: ReadContext
  readonly whole: WholeReader
  readonly authorise: (client: Client) => Promise<Authorisation>
  /** Resolves with `undefined` once the rate limit allows a request, or with a refusal after at most `timeMs`. */
  readonly acquire: (client: Client, side: Side, timeMs: number) => Promise<PaceRefusal | undefined>
  readonly clock: Clock
  readonly stopped: AbortSignal
  /** Translates the V2 path and query of a read of registrations to the URL on V3. Returns `undefined` for any other path or query. */
  readonly toV3Registrations: (path: string, query: string) => URL | undefined
  /** Called after each request. `status` is `undefined` if the service did not answer. */
  readonly onCall: (client: Client, side: Side, status: number | undefined) => void
}

const CALL_MS = 10_000

/**
 * Creates the functions that read from V2, and from V3 through the adapter. Requests of one partner to one side are sent one after another.
 */
export function createAskSides(options: AskOptions): Readonly<Record<Side, AskSide>> {
  const { clock, stopped } = options
  const last = new Map<string, Promise<unknown>>()
  const askOn =
    (
      side: Side,
      send: (options: AskOptions, read: AskedRead, budget: CallBudget) => Promise<SideAnswer>,
    ): AskSide =>
    async (read, timeMs) => {
      const name = `${side} ${read.client.partner.id}`
      const budget = openBudget(options, read.client, side, clock.nowMs() + timeMs)
      const answering = (last.get(name) ?? Promise.resolve())
        .then(() => send(options, read, budget))
        .catch(failureOf)
      last.set(name, answering)
      const answer = await answering
      // A request that was aborted because the adapter stopped says nothing about the service.
      return stopped.aborted && answer.kind !== 'answered' ? { kind: 'unsent', reason: 'stopped' } : answer
    }
  return { v2: askOn('v2', askV2), v3: askOn('v3', askV3) }
}

function openBudget(
  { acquire, clock }: AskOptions,
  client: Client,
  side: Side,
  deadlineMs: number,
): CallBudget {
  const leftMs = (): number => deadlineMs - clock.nowMs()
  return {
    take: async () => {
      const refusal = await acquire(client, side, leftMs())
      if (refusal !== undefined) throw new UnsentError(refusal)
      return 0
    },
    // A comparison does not retry a request after a 429.
    pause: () => Promise.resolve(false),
    leftMs,
    queuedMs: () => 0,
  }
}

async function askV3(options: AskOptions, asked: AskedRead, budget: CallBudget): Promise<SideAnswer> {
  const { reads, stopped, onCall } = options
  const { client, kind, path, query } = asked
  const url = kind === 'registrations' ? options.toV3Registrations(path, query) : undefined
  if (kind === 'registrations' && url === undefined) return { kind: 'unknown' }
  const authorisation = await options.authorise(client)
  const { credentials, renew } = authorisation
  if (url !== undefined) return getWhole(options, asked, 'v3', url, credentials, budget)
  const { reader } = reads
  const session: ReadSession = {
    reader: {
      ...reader,
      get: async (resource, text, own, signal, leftMs, queueKey) => {
        const outcome = await reader.get(resource, text, own, signal, Math.min(leftMs, CALL_MS), queueKey)
        onCall(client, 'v3', statusOf(outcome))
        return outcome
      },
    },
    queueKey: { partner: client.partner.id, owner: client.owner, isAccepted: () => true },
    credentials,
    renew,
    budget,
    signal: stopped,
    pages: 0,
  }
  return { kind: 'answered', status: 200, text: await readAsClient(reads, authorisation, asked, session) }
}

/**
 * Returns the body that a V2 client gets for a read of marks, from the code that serves clients. The invented host appears in links only.
 */
export async function readAsClient(
  reads: ReadContext,
  authorisation: Authorisation,
  { kind, path, query, accept, prefer }: Omit<AskedRead, 'client'>,
  session: ReadSession,
): Promise<string> {
  const address = `http://adapter.invalid${path}`
  const request: ReadRequest = { path, query, address, nextAddress: address, accept, prefer }
  const { body } = await (kind === 'key' ? readMark : readPage)(reads, authorisation, request, session)
  return body.join('')
}

async function askV2(options: AskOptions, asked: AskedRead, budget: CallBudget): Promise<SideAnswer> {
  const { partner, client: credentials } = asked.client
  if (partner.v2 === undefined) return { kind: 'unknown' }
  const url = new URL(`${partner.v2.href.replace(/\/$/, '')}${asked.path}`)
  if (asked.query !== '') url.search = `?${asked.query}`
  return getWhole(options, asked, 'v2', url, credentials, budget)
}

async function getWhole(
  { whole, onCall }: AskOptions,
  { client, accept, prefer }: AskedRead,
  side: Side,
  url: URL,
  credentials: Pick<Authorisation['credentials'], 'authorization' | 'subscriptionKey'>,
  budget: CallBudget,
): Promise<SideAnswer> {
  await budget.take()
  const headers = {
    authorization: credentials.authorization,
    'ocp-apim-subscription-key': credentials.subscriptionKey,
    accept: accept === '' ? 'application/json' : accept,
    ...(prefer !== '' && side === 'v2' && { prefer }),
    ...(side === 'v3' && { 'odata-maxversion': '4.0' }),
  }
  const reply = await whole.get(url, headers, Math.min(CALL_MS, budget.leftMs()))
  onCall(client, side, reply?.status)
  if (reply === undefined || isNoAnswer(reply.status)) return { kind: 'unknown' }
  return { kind: 'answered', status: reply.status, text: reply.body.toString('utf8') }
}

/** Returns true for a status that says nothing about the data: redirects, and errors of credentials, rate limits or the service. */
function isNoAnswer(status: number): boolean {
  return status >= 500 || [401, 403, 407, 408, 429].includes(status) || (status >= 300 && status < 400)
}

function statusOf(outcome: Awaited<ReturnType<ReadSession['reader']['get']>>): number | undefined {
  switch (outcome.kind) {
    case 'read':
      return 200
    case 'refused':
      return outcome.error.status
    case 'broken':
      return outcome.status === 0 ? undefined : outcome.status
    case 'unavailable':
      return outcome.reason === 'throttled' ? 429 : outcome.reason === 'unavailable' ? 503 : undefined
    case 'overdue':
    case 'busy':
      return undefined
  }
}

class UnsentError extends AdapterError {
  readonly reason: PaceRefusal

  constructor(reason: PaceRefusal) {
    super(
      'ADP_OVERLOADED',
      'The rate limit of comparisons allows no request now. Nothing was sent, and the comparison is skipped.',
    )
    this.reason = reason
  }
}

/** Converts an error of a read. The result is an answer if V3 rejected the read itself, and otherwise `unsent` or `unknown`. */
export function failureOf(cause: unknown): SideAnswer {
  const unsent = unsentReason(cause)
  if (unsent !== undefined) return { kind: 'unsent', reason: unsent }
  if (!(cause instanceof AdapterError)) return { kind: 'unknown' }
  const isAnswer = ['ADP_NOT_FOUND', 'ADP_QUERY', 'ADP_UPSTREAM_REFUSED'].includes(cause.code)
  return isAnswer ? { kind: 'answered', status: cause.status, text: '' } : { kind: 'unknown' }
}

function unsentReason(cause: unknown): PaceRefusal | undefined {
  if (cause instanceof UnsentError) return cause.reason
  return cause instanceof Error && cause.cause !== undefined ? unsentReason(cause.cause) : undefined
}
