import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

import { AdapterError, errorRules } from '../errors.ts'
import { type BodyOptions, readBody, readRawBody } from '../http/body.ts'
import type { Authorisation } from '../partners/partner.ts'
import { isWriteKind } from '../rollout/stage.ts'
import { toV2ReadBackFilter, toV3Page } from '../translate/index.ts'
import { MAX_NODES_AT_ONCE, parseJson } from '../upstream/index.ts'
import { type Plan, type PlannedRequest, planWrites } from '../writes/plan.ts'
import { watchGiveWay } from '../writes/predecessors.ts'
import {
  resultLost,
  type ReadMarkOfV2,
  type RelayEnd,
  replayOnV2,
  type ReplyReading,
} from '../writes/relayed-reply.ts'
import { beginRelayed, isKnowable, type RelayedBatch, waitForOlder } from '../writes/relayed-write.ts'
import { replayBatch } from '../writes/replay.ts'
import { readPaced } from '../writes/write-session.ts'
import { showsAcceptance } from './allowed-paths.ts'
import { releaseAfterReply } from './byte-budget.ts'
import type { ProxyContext } from './context.ts'
import { type Exchange, expectCurrent } from './exchange.ts'
import type { ForwardCall, ForwardOutcome } from './forwarder.ts'
import { serviceRoot, V2_LINK_SEGMENT } from './requested-address.ts'
import { countReply, endReply, onceWritten, openReply, replyBytes, writeRequestOf } from './write-handler.ts'

/** A larger reply of V2 is not kept: should the batch come again when V3 serves, its records are read back. */
const MAX_KEPT_BYTES = 8_388_608
const SETTLE_WITHIN_MS = 250
/**
 * How long V2 may be kept waiting for the journal before it is sent a write that the journal does not know. With keys, V3 may have served the
 * same write: a journal that is only slow is then waited for longer.
 */
const RECORD_WITHIN_MS = { identity: 250, keys: 1_000 } as const

/** Sends a request on to V2, and its reply back, both as they are. Error: `ADP_UPSTREAM_UNAVAILABLE` where there is no V2. */
export async function handleLegacy(context: ProxyContext, exchange: Exchange): Promise<void> {
  const { request, response, client, entry, kind, observer } = exchange
  const { v2 } = client.partner
  if (v2 === undefined)
    throw new AdapterError(
      'ADP_UPSTREAM_UNAVAILABLE',
      'V2 serves this partner, and no address of V2 is configured. Nothing was sent.',
    )
  const call = toForwardCall(context, exchange)
  if (isWriteKind(kind) && (entry.known !== 'nothing' || observer.copyBytes > 0)) {
    await relayWrite(context, exchange, v2, call)
    return
  }
  const outcome = await context.relays
    .of(v2)
    .forward(request, response, { ...call, captureBytes: observer.copyBytes })
  if (outcome.kind === 'answered' && outcome.reply !== undefined)
    await observer.replied({ kind: 'read', reply: outcome.reply })
}

/** Next links carry the marker of their side: V2 also serves the page that they lead to. */
function toForwardCall(
  { accepted, rewriteLinks, comparison }: ProxyContext,
  { client, request, entry }: Exchange,
): ForwardCall {
  const base = serviceRoot(request, '')
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  return {
    queueKey: accepted.queueKey(client),
    links: rewriteLinks ? [{ from: '', to: base, nextTo: base + V2_LINK_SEGMENT }] : undefined,
    // The outcomes of a write reach its client as V2 wrote them.
    linksInBody: isRead,
    onReplyHead: ({ status }) => {
      if (showsAcceptance(request, status)) accepted.acceptByV2(client)
      if (status === 429) comparison.onThrottled(client.partner, entry.stage)
    },
  }
}

/**
 * Reads a write whole and sends it on to V2. Once the journal knows a write, V3 does not post it again, gives V2's reply if it comes again, and keeps
 * the order of its keys. What this codec cannot read is sent on all the same: V3 could never be sent it. A batch that V3 has served
 * before is answered from the journal, and V2 is not sent it; so is one to which V2 has given its final reply, except at
 * `legacy`. Errors, with nothing sent: those of the journal at `canary`, `ADP_BUDGET_EXCEEDED` where older records
 * of its keys stay unsettled on V3, and those of `replayBatch` and `replayOnV2`.
 */
async function relayWrite(
  context: ProxyContext,
  exchange: Exchange,
  v2: URL,
  call: ForwardCall,
): Promise<void> {
  const { request, response, client, entry, receivedMs, observer } = exchange
  const slices = context.slicing.open()
  const held = context.byteBudget.open(context.accepted.queueKey(client))
  const onBytes = (count: number): void => held.take(count)
  const limits = context.limits()
  const { maxBodyBytes } = limits
  try {
    const sent = await readRawBody(request, maxBodyBytes, onBytes)
    const body = sent && (await decompressed(request, sent, { maxBytes: maxBodyBytes, onBytes, slices }))
    const form = writeRequestOf(exchange)
    const plan =
      body &&
      (await planWrites(form, body, client.partner, receivedMs, limits, slices).catch(unlessUnreadable))
    observer.decoded(plan)
    const reading = { slices, onBytes }
    const send: Send = async ({ expectHeld, onReplyEnd } = {}) => {
      const captureBytes = onReplyEnd === undefined ? observer.copyBytes : MAX_KEPT_BYTES
      const outcome = await context.relays.of(v2).forward(request, response, {
        ...call,
        body: sent,
        beforeSend: () => {
          expectCurrent(entry)
          expectHeld?.()
        },
        captureBytes,
        keepGoing: captureBytes > 0,
        onReplyEnd,
      })
      await observer.replied({ kind: 'relayed', body, plan, outcome, reading })
      return outcome
    }
    const planned = body && plan && { request: form, body, receivedMs, plan, slices }
    const known = entry.known === 'keys' ? 'keys' : 'identity'
    if (planned === undefined || !isKnowable(context, planned, known)) await send()
    else await relayKnown(context, exchange, v2, { planned, known, reading, send })
  } finally {
    releaseAfterReply(held, response)
  }
}

/** Sends a write to V2, once. */
type Send = (known?: {
  /** Undefined: the journal does not know it. */
  readonly expectHeld?: RelayedBatch['expectHeld'] | undefined
  /** The last bytes of the reply wait for it; undefined: nothing is to be kept of the reply. */
  readonly onReplyEnd?: ForwardCall['onReplyEnd']
}) => Promise<ForwardOutcome>

/** The body of a request without its compression; undefined: it cannot be read, or is larger than `maxBytes`. */
async function decompressed(
  { headers }: IncomingMessage,
  body: Buffer,
  limits: Pick<BodyOptions, 'maxBytes' | 'onBytes' | 'slices'>,
): Promise<Buffer | undefined> {
  const contentEncoding = headers['content-encoding']
  if (contentEncoding === undefined) return body
  return readBody(Readable.from([body]), { ...limits, contentEncoding }).catch(unlessUnreadable)
}

/** What is no batch or record for this codec is V2's to judge. */
function unlessUnreadable(cause: unknown): undefined {
  if (cause instanceof AdapterError && errorRules[cause.code].class === 'request') return undefined
  throw cause
}

/** A write of V2 that the journal is to know, while it is in memory. */
interface KnownWrite {
  readonly planned: PlannedRequest
  readonly known: 'identity' | 'keys'
  /** For reading V2's reply. */
  readonly reading: ReplyReading
  readonly send: Send
}

async function relayKnown(
  context: ProxyContext,
  exchange: Exchange,
  v2: URL,
  { planned, known, reading, send }: KnownWrite,
): Promise<void> {
  const { client, entry, response } = exchange
  const { partner } = client
  const { plan } = planned
  const readMark = createV2MarkReader(context, v2, exchange)
  const begin = (resendOf: number | undefined): ReturnType<typeof beginRelayed> =>
    beginRelayed(context, client, planned, {
      known,
      recordWithinMs: entry.stage === 'canary' && known === 'keys' ? undefined : RECORD_WITHIN_MS[known],
      isSlow: known === 'keys' ? () => entry.isStoreAnswering() : undefined,
      resendOf,
      reading,
    })
  // At `legacy` nothing that V2 was sent is looked up.
  let begun = await begin(entry.stage === 'legacy' ? undefined : 0)
  while (begun.kind === 'sent') {
    const { batches } = begun
    const answered = await replayOnV2(context, { client, plan, batches, readMark, reading })
    if (answered !== undefined) return endReply(context, exchange, planned, answered)
    begun = await begin(batches[0])
  }
  if (begun.kind === 'known') return answerFromV3(context, exchange, planned, begun.batch)
  if (begun.kind === 'late') context.noteUnrecorded(partner.id)
  else if (known === 'keys' && !(await mayBeSent(context, exchange, begun, plan, readMark))) return
  const { recordEnd: ended } = begun
  let end: RelayEnd = { kind: 'notSent' }
  try {
    const outcome = await send({
      expectHeld: begun.kind === 'new' ? begun.expectHeld : undefined,
      onReplyEnd: async (reply) => {
        // The end of the reply waits for the journal, but not for long: its client may send a newer mark to V3 then.
        const late = new Promise<void>((resolve) => void context.clock.after(SETTLE_WITHIN_MS, resolve))
        await Promise.race([ended({ kind: 'answered', reply }), late])
      },
    })
    if (outcome.kind === 'answered' && outcome.reply !== undefined)
      end = { kind: 'answered', reply: outcome.reply }
    else if (outcome.kind !== 'notSent') end = { kind: 'lost' }
  } finally {
    await ended(end)
  }
  if (begun.kind === 'new') {
    const { batch } = begun
    onceWritten(response, () => context.journal.answered(batch))
  }
}

/** Waits for older records of the keys; false where the client left meanwhile. */
async function mayBeSent(
  context: ProxyContext,
  exchange: Exchange,
  relayed: RelayedBatch,
  { records }: Plan,
  readV2: ReadMarkOfV2,
): Promise<boolean> {
  const { response, client } = exchange
  const { partner } = client
  const reading = {
    partner,
    readV3: createV3MarkReader(context, exchange),
    readV2,
    deadlineMs: context.clock.nowMs() + partner.budgetMs,
  }
  let isSent = false
  const giveWay = watchGiveWay(context, relayed.batch, context.accepted.queueKey(client))
  try {
    const keys = records.map(({ key }) => key)
    const waited = waitForOlder(context, relayed.batch, keys, reading)
    const gaveWay = giveWay === undefined ? [] : [giveWay.due.then(() => false)]
    const inTime = await Promise.race([waited, relayed.lost(), ...gaveWay])
    isSent = inTime && !response.destroyed
    if (!inTime)
      throw new AdapterError(
        'ADP_BUDGET_EXCEEDED',
        'An earlier mark of one of these learners and events was sent to V3, and nothing says yet what became of it. Nothing was sent; send the request again later.',
      )
  } finally {
    giveWay?.stop()
    if (!isSent) await relayed.recordEnd({ kind: 'notSent' })
  }
  return isSent
}

/** Reads marks of V3 under the credentials of the client of an exchange that V2 serves. */
function createV3MarkReader(
  context: ProxyContext,
  { request, client }: Exchange,
): (query: string, timeoutMs: number) => ReturnType<typeof readPaced> {
  let asked: Promise<Authorisation> | undefined
  return async (query, timeoutMs) => {
    try {
      asked ??= context.authorise(request, client)
      return await readPaced(context, await asked, query, timeoutMs)
    } catch (cause) {
      if (cause instanceof AdapterError) return { kind: 'overdue' }
      throw cause
    }
  }
}

/** Creates what reads a mark of V2 with a client's own credentials, beside the path of the client's request. */
function createV2MarkReader(
  { v2Reader, tracing }: ProxyContext,
  v2: URL,
  { target, client }: Exchange,
): ReadMarkOfV2 {
  const set = target.rawPath.replace(/\/[^/]*\/?$/, '/AttendanceRecords')
  const { authorization, subscriptionKey } = client.client
  return async (record, timeoutMs) => {
    const url = new URL(`${v2.href.replace(/\/$/, '')}${set}`)
    url.search = `?$filter=${encodeURIComponent(toV2ReadBackFilter(record))}`
    const headers = {
      accept: 'application/json',
      authorization,
      'ocp-apim-subscription-key': subscriptionKey,
    }
    const trace = tracing?.call('V2 read')
    const [, traceparent] = trace?.fields ?? []
    const traced = traceparent === undefined ? headers : { ...headers, traceparent }
    const reply = await v2Reader.get(url, traced, timeoutMs)
    trace?.end(reply?.status)
    if (reply === undefined) return { kind: 'overdue' }
    const { status, body } = reply
    if (isDenied(status)) return { kind: 'refused', error: { status, form: 'unreadable', entries: [] } }
    const json = parseJson(body.toString('utf8'), MAX_NODES_AT_ONCE)
    const isPage = status >= 200 && status < 300 && json !== undefined
    return isPage ? { kind: 'read', json: toV3Page(json) } : { kind: 'broken', status }
  }
}

/** What V2 may deny to some credentials alone. */
const isDenied = (status: number): boolean =>
  status >= 400 && status < 500 && status !== 408 && status !== 429

/** A write ends on the side where it began. */
async function answerFromV3(
  context: ProxyContext,
  exchange: Exchange,
  planned: PlannedRequest,
  batch: number,
): Promise<void> {
  const authorisation = await context.authorise(exchange.request, exchange.client)
  countReply(context, exchange, replyBytes(planned.request, planned.plan))
  const reply = openReply(exchange, planned.plan)
  const answered = await replayBatch(context, authorisation, batch, reply, planned.slices)
  if (answered === undefined) throw resultLost()
  await endReply(context, exchange, planned, answered)
}
