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
import { beginRelayed, isWorthRecording, type RelayedBatch, waitForOlder } from '../writes/relayed-write.ts'
import { replayBatch } from '../writes/replay.ts'
import { readPaced } from '../writes/write-session.ts'
import { showsAcceptance } from './allowed-paths.ts'
import { releaseAfterReply } from './byte-budget.ts'
import type { ProxyContext } from './context.ts'
import { type Exchange, expectCurrent } from './exchange.ts'
import type { ForwardCall, ForwardOutcome } from './forwarder.ts'
import { serviceRoot, V2_LINK_SEGMENT } from './requested-address.ts'
import { countReply, endReply, onceWritten, openReply, replyBytes, writeRequestOf } from './write-handler.ts'

/** Maximum size of a stored reply of V2 in bytes. A batch without a stored reply is read back if its client resends it while V3 serves. */
const MAX_KEPT_BYTES = 8_388_608
const SETTLE_WITHIN_MS = 250
/**
 * The time in milliseconds that the adapter waits for the journal before it sends V2 a write that the journal has not recorded. The wait is
 * longer for `keys`, because V3 may have served the same write before, and only the journal knows whether it did.
 */
const RECORD_WITHIN_MS = { identity: 250, keys: 1_000 } as const

/** Answers an exchange that V2 serves. Throws `ADP_UPSTREAM_UNAVAILABLE` if no V2 is configured. */
export async function handleLegacy(context: ProxyContext, exchange: Exchange): Promise<void> {
  const { request, response, client, entry, kind, copyBytes, result } = exchange
  const { v2 } = client.partner
  if (v2 === undefined)
    throw new AdapterError(
      'ADP_UPSTREAM_UNAVAILABLE',
      'V2 serves this partner, but no address of V2 is configured. Nothing was sent. Tell the operator of the adapter.',
    )
  const call = toForwardCall(context, exchange)
  if (isWriteKind(kind) && (entry.known !== 'nothing' || copyBytes > 0)) {
    await relayWrite(context, exchange, v2, call)
    return
  }
  const outcome = await context.relays.of(v2).forward(request, response, { ...call, captureBytes: copyBytes })
  if (outcome.kind === 'answered' && outcome.reply !== undefined)
    result.outcome = { kind: 'read', reply: outcome.reply }
}

/** Returns the options for a call to V2. Next links in the reply get V2's marker, so that V2 also serves the next page. */
function toForwardCall(
  { accepted, rewriteLinks, comparison }: ProxyContext,
  { client, request, entry }: Exchange,
): ForwardCall {
  const base = serviceRoot(request, '')
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  return {
    queueKey: accepted.queueKey(client),
    links: rewriteLinks ? [{ from: '', to: base, nextTo: base + V2_LINK_SEGMENT }] : undefined,
    // Rewrites links only in the bodies of replies to reads. The client gets the body of a reply to a write exactly as V2 wrote it.
    linksInBody: isRead,
    onReplyHead: ({ status }) => {
      if (showsAcceptance(request, status)) accepted.acceptByV2(client)
      if (status === 429) comparison.onThrottled(client.partner, entry.stage)
    },
  }
}

/**
 * Reads a whole write, records it in the journal, and forwards it to V2. The journal then recognises a resend of the write and keeps later
 * records of its keys in order. A write that cannot be decoded is forwarded without an entry, because it could never be sent to V3.
 *
 * A batch that V3 served before is answered from the journal and not sent to V2. The same applies to a batch to which V2 gave a final
 * reply, except at `legacy`. Every error means that this copy was not sent: the errors of the journal at `canary`, `ADP_BUDGET_EXCEEDED` if
 * older records of the same keys stay open on V3, and the errors of `replayBatch` and `replayOnV2`.
 */
async function relayWrite(
  context: ProxyContext,
  exchange: Exchange,
  v2: URL,
  call: ForwardCall,
): Promise<void> {
  const { request, response, client, entry, receivedMs, copyBytes, result } = exchange
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
    result.plan = plan
    const reading = { slices, onBytes }
    const send: Send = async ({ expectLease, onReplyEnd } = {}) => {
      const captureBytes = onReplyEnd === undefined ? copyBytes : MAX_KEPT_BYTES
      const outcome = await context.relays.of(v2).forward(request, response, {
        ...call,
        body: sent,
        beforeSend: () => {
          expectCurrent(entry)
          expectLease?.()
        },
        captureBytes,
        keepGoing: captureBytes > 0,
        onReplyEnd,
      })
      result.outcome = { kind: 'relayed', body, outcome, endedMs: context.nowMs() }
      return outcome
    }
    const planned = body && plan && { request: form, body, receivedMs, plan, slices }
    const known = entry.known === 'keys' ? 'keys' : 'identity'
    if (planned === undefined || !isWorthRecording(context, planned, known)) await send()
    else await relayKnown(context, exchange, v2, { planned, known, reading, send })
  } finally {
    releaseAfterReply(held, response)
  }
}

/** Sends a write to V2. Called at most once per request. */
type Send = (known?: {
  /** Checks the lease before the first byte is sent. `undefined` if the journal did not record the write. */
  readonly expectLease?: RelayedBatch['expectLease'] | undefined
  /** Called with V2's reply. The last bytes of the reply wait until the returned promise settles. `undefined` if the reply is not stored. */
  readonly onReplyEnd?: ForwardCall['onReplyEnd']
}) => Promise<ForwardOutcome>

/** Returns the decompressed body, or `undefined` if it cannot be decompressed or exceeds `maxBytes`. */
async function decompressed(
  { headers }: IncomingMessage,
  body: Buffer,
  limits: Pick<BodyOptions, 'maxBytes' | 'onBytes' | 'slices'>,
): Promise<Buffer | undefined> {
  const contentEncoding = headers['content-encoding']
  if (contentEncoding === undefined) return body
  return readBody(Readable.from([body]), { ...limits, contentEncoding }).catch(unlessUnreadable)
}

/** Returns `undefined` for an error of decoding, because V2 judges such requests itself. Throws any other error. */
function unlessUnreadable(cause: unknown): undefined {
  if (cause instanceof AdapterError && errorRules[cause.code].class === 'request') return undefined
  throw cause
}

interface KnownWrite {
  readonly planned: PlannedRequest
  readonly known: 'identity' | 'keys'
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
  // At `legacy`, the journal does not look for earlier copies that were sent to V2, so V2 gets each resend.
  let begun = await begin(entry.stage === 'legacy' ? undefined : 0)
  while (begun.kind === 'sent') {
    const { batches } = begun
    const answered = await replayOnV2(context, { client, plan, batches, readMark, reading })
    if (answered !== undefined) {
      endReply(context, exchange, planned, answered)
      return
    }
    begun = await begin(batches[0])
  }
  if (begun.kind === 'known') return answerFromV3(context, exchange, planned, begun.batch)
  if (begun.kind === 'late') context.noteUnrecorded(partner.id)
  else if (known === 'keys' && !(await mayBeSent(context, exchange, begun, plan, readMark))) return
  const { recordEnd: ended } = begun
  let end: RelayEnd = { kind: 'notSent' }
  try {
    const outcome = await send({
      expectLease: begun.kind === 'new' ? begun.expectLease : undefined,
      onReplyEnd: async (reply) => {
        // A client that has the whole reply may send a newer mark at once, and V3 may serve that mark. The journal should have the outcome
        // by then, so the last bytes of the reply wait for the journal, for at most SETTLE_WITHIN_MS.
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

/**
 * Waits for older records of the same keys. Returns false if the client disconnected. Throws `ADP_BUDGET_EXCEEDED` if the wait is too long.
 */
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
        'An earlier mark of one of these learners and events was sent to V3, and its outcome is not known yet. This copy was not sent. Send the same request again later.',
      )
  } finally {
    giveWay?.stop()
    if (!isSent) await relayed.recordEnd({ kind: 'notSent' })
  }
  return isSent
}

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

/** Returns true for a status that may depend on the credentials. */
const isDenied = (status: number): boolean =>
  status >= 400 && status < 500 && status !== 408 && status !== 429

/** Answers a batch that V3 served before. V2 must not get such a batch, because it would apply the batch a second time. */
async function answerFromV3(
  context: ProxyContext,
  exchange: Exchange,
  planned: PlannedRequest,
  batch: number,
): Promise<void> {
  const authorisation = await context.authorise(exchange.request, exchange.client)
  countReply(context, exchange, replyBytes(planned.request, planned.plan))
  const reply = openReply(context, exchange, planned.plan)
  const answered = await replayBatch(context, authorisation, batch, reply, planned.slices)
  if (answered === undefined) throw resultLost()
  endReply(context, exchange, planned, answered)
}
