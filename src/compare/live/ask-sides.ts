import { AdapterError } from '../../errors.ts'
import type { Clock } from '../../clock.ts'
import type { Authorisation, Client } from '../../partners/partner.ts'
import {
  type ReadContext,
  readMark,
  readPage,
  type ReadRequest,
  type ReadSession,
} from '../../reads/index.ts'
import type { Side } from '../../rollout/index.ts'
import type { WholeReader } from '../../upstream/index.ts'
import type { ClientLimit, PacedSide, PacedSides } from './paced-side.ts'
import { unsentReason } from './skip-reason.ts'

/** A read that a comparison asks a side for, with the credentials of the client whose exchange it compares. */
export interface AskedRead {
  readonly client: Client
  readonly kind: 'filter' | 'key' | 'registrations'
  /** As a client of V2 would write them. */
  readonly path: string
  readonly query: string
  readonly accept: string
  readonly prefer: string
}

/** `unknown`: the side did not answer, or not to these credentials. `unsent`: no call left, or the adapter stopped before its answer. */
export type SideAnswer =
  | { readonly kind: 'answered'; readonly status: number; readonly text: string }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'unsent'; readonly reason: UnsentReason }

export type UnsentReason = 'silence' | 'pace' | 'stopped'

/** Asks one side for what a client of V2 would get; never rejects. */
export type AskSide = (read: AskedRead, timeMs: number) => Promise<SideAnswer>

/** What V3 is asked with for a client. */
export interface AskAuthorisation {
  /** Without the rate limit. */
  readonly authorisation: Authorisation
  /** Undefined: nothing limits the calls of the partner's clients. */
  readonly clientLimit: ClientLimit | undefined
}

export interface AskOptions {
  /** With connections of their own: a comparison that waits holds none of a client's. */
  readonly reads: ReadContext
  readonly whole: WholeReader
  readonly authorise: (client: Client) => Promise<AskAuthorisation>
  readonly sides: PacedSides
  readonly clock: Clock
  /** Aborts when the adapter stops. */
  readonly stopped: AbortSignal
  /** The address below which V3 has the registrations that a V2 path and query ask for; undefined: it is none of them. */
  readonly toV3Registrations: (path: string, query: string) => URL | undefined
  /** Called for each call of a comparison that left. */
  readonly onCall: (partner: string, side: Side, status: number | undefined) => void
  /** Called with a client whose credentials V3 has accepted. */
  readonly onAccepted: (client: Authorisation) => void
}

/** The longest time of one call. */
const CALL_MS = 10_000

/** Creates what asks V3, through the read path of the adapter, and V2, with the client's own credentials. */
export function createAskSides(options: AskOptions): Readonly<Record<Side, AskSide>> {
  const ask =
    (side: Side, send: (read: AskedRead, paced: PacedSide, timeMs: number) => Promise<SideAnswer>): AskSide =>
    async (read, timeMs) => {
      const paced = options.sides.of(read.client.partner, side)
      if (paced.isSilent()) return { kind: 'unsent', reason: 'silence' }
      const { clock, stopped } = options
      const deadlineMs = clock.nowMs() + timeMs
      const answer = await paced.alone(() => send(read, paced, deadlineMs - clock.nowMs())).catch(failureOf)
      // A call that the end of the adapter cut short says nothing of its side.
      return stopped.aborted && answer.kind !== 'answered' ? { kind: 'unsent', reason: 'stopped' } : answer
    }
  return {
    v2: ask('v2', (read, paced, timeMs) => askV2(options, read, paced, timeMs)),
    v3: ask('v3', (read, paced, timeMs) =>
      read.kind === 'registrations'
        ? askRegistrations(options, read, paced, timeMs)
        : askV3(options, read, paced, timeMs),
    ),
  }
}

async function askV3(
  { reads, authorise, stopped, onCall, onAccepted }: AskOptions,
  { client, kind, path, query, accept, prefer }: AskedRead,
  paced: PacedSide,
  timeMs: number,
): Promise<SideAnswer> {
  const { authorisation, clientLimit } = await authorise(client)
  const budget = paced.open(timeMs, clientLimit)
  const { credentials, renew } = authorisation
  const { reader } = reads
  const session: ReadSession = {
    reader: {
      ...reader,
      get: async (resource, text, own, signal, leftMs, queueKey) => {
        const outcome = await reader.get(resource, text, own, signal, Math.min(leftMs, CALL_MS), queueKey)
        onCall(client.partner.id, 'v3', statusOf(outcome))
        return outcome
      },
    },
    queueKey: { partner: client.partner.id, owner: client.owner, isAccepted: () => true },
    credentials,
    renew,
    budget,
    signal: stopped,
    onAccepted: () => onAccepted(authorisation),
    pages: 0,
  }
  const address = `http://adapter.invalid${path}`
  const request: ReadRequest = { path, query, address, nextAddress: address, accept, prefer }
  const { body } = await (kind === 'key' ? readMark : readPage)(reads, authorisation, request, session)
  return { kind: 'answered', status: 200, text: body.join('') }
}

async function askV2(
  options: AskOptions,
  { client, path, query, accept, prefer }: AskedRead,
  paced: PacedSide,
  timeMs: number,
): Promise<SideAnswer> {
  const { partner } = client
  if (partner.v2 === undefined) return { kind: 'unknown' }
  const url = new URL(`${partner.v2.href.replace(/\/$/, '')}${path}`)
  if (query !== '') url.search = `?${query}`
  return getWhole(options, { url, partner: client, side: 'v2' }, paced, timeMs, undefined, {
    authorization: client.client.authorization,
    'ocp-apim-subscription-key': client.client.subscriptionKey,
    accept: accept === '' ? 'application/json' : accept,
    ...(prefer === '' ? {} : { prefer }),
  })
}

async function askRegistrations(
  options: AskOptions,
  { client, path, query, accept }: AskedRead,
  paced: PacedSide,
  timeMs: number,
): Promise<SideAnswer> {
  const url = options.toV3Registrations(path, query)
  if (url === undefined) return { kind: 'unknown' }
  const { authorisation, clientLimit } = await options.authorise(client)
  const { credentials } = authorisation
  return getWhole(options, { url, partner: client, side: 'v3' }, paced, timeMs, clientLimit, {
    authorization: credentials.authorization,
    'ocp-apim-subscription-key': credentials.subscriptionKey,
    accept: accept === '' ? 'application/json' : accept,
  })
}

async function getWhole(
  { whole, onCall }: AskOptions,
  { url, partner, side }: { readonly url: URL; readonly partner: Client; readonly side: Side },
  paced: PacedSide,
  timeMs: number,
  shared: ClientLimit | undefined,
  headers: Readonly<Record<string, string>>,
): Promise<SideAnswer> {
  const budget = paced.open(timeMs, shared)
  await budget.take()
  const reply = await whole.get(url, headers, Math.min(CALL_MS, budget.leftMs()))
  onCall(partner.partner.id, side, reply?.status)
  if (reply?.status === 429) paced.silence()
  if (reply === undefined || isNoAnswer(reply.status)) return { kind: 'unknown' }
  return { kind: 'answered', status: reply.status, text: reply.body.toString('utf8') }
}

/** A status that says nothing of the data: credentials, limits and failures of the service. */
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

/** What the adapter's client would have got: an answer where V3 has given one. */
export function failureOf(cause: unknown): SideAnswer {
  const reason = unsentReason(cause)
  if (reason !== undefined) return { kind: 'unsent', reason }
  if (!(cause instanceof AdapterError)) return { kind: 'unknown' }
  const isAnswer = ['ADP_NOT_FOUND', 'ADP_QUERY', 'ADP_UPSTREAM_REFUSED'].includes(cause.code)
  return isAnswer ? { kind: 'answered', status: cause.status, text: '' } : { kind: 'unknown' }
}
