import { AdapterError } from '../errors.ts'
import type { Slices } from '../http/slices.ts'
import type { Authorisation } from '../partners/partner.ts'
import {
  beginRelayed,
  isKnowable,
  type MarkReaders,
  planWrites,
  readRelayed,
  type RelayedBatch,
  type RelayedRequest,
  type RelayedWrite,
  type RelayEnd,
  type ReplyReading,
  replayBatch,
  replayOnV2,
  waitForOlder,
  watchGiveWay,
  type WriteRequest,
} from '../writes/index.ts'
import { readPaced } from '../writes/write-session.ts'
import { isV2Offered, offerWrite } from './offer-exchange.ts'
import { endBatchReply, onceWritten, openBatchReply } from './batch-reply.ts'
import { releaseAfterReply } from './byte-budget.ts'
import type { ProxyContext } from './context.ts'
import { expectCurrent } from './expect-current.ts'
import { layoutFor } from './handle-batch.ts'
import type { LegacyExchange } from './legacy-exchange.ts'
import { decompressed, readRelayedBody } from './read-relayed-body.ts'
import { recordsUrlOf, serviceRoot } from './requested-address.ts'
import { createV2MarkReader } from './read-v2-mark.ts'
import type { ForwardCall } from './forwarder.ts'
import type { CapturedReply } from './reply-writer.ts'

/** A larger reply of V2 is not kept: should the batch come again when V3 serves, its records are read back. */
const MAX_KEPT_BYTES = 8_388_608
const SETTLE_WITHIN_MS = 250
/**
 * How long V2 may be kept waiting for the journal before it is sent a write that the journal does not know. With keys, V3 may have served the
 * same write: a journal that is only slow is then waited for longer.
 */
const RECORD_WITHIN_MS = { identity: 250, keys: 1_000 } as const

/** A write of V2 while it is in memory. */
interface Relaying {
  readonly exchange: LegacyExchange
  readonly v2: URL
  /** With the body as it came; without it, it is sent on as a stream. */
  readonly call: ForwardCall
  /** Offers V2's reply to be compared; undefined: it is not. */
  readonly offer: ((reply: CapturedReply) => void) | undefined
  /** For reading V2's reply. */
  readonly reading: ReplyReading
}

/**
 * Sends a write on to V2 that the journal is to know: from then on V3 does not post it again, gives V2's reply if it comes again, and keeps
 * the order of its keys. What this codec cannot read is sent on all the same: V3 could never be sent it. A batch that V3 has served
 * before is answered from the journal, and V2 is not sent it; so is one to which V2 has given its final reply, unless its partner or its
 * stage wants every batch sent on. Errors, with nothing sent: those of the journal at `canary`, `ADP_BUDGET_EXCEEDED` where older records
 * of its keys stay unsettled on V3, and those of `replayBatch` and `replayOnV2`.
 */
export async function handleRelayedWrite(
  context: ProxyContext,
  exchange: LegacyExchange,
  v2: URL,
  call: ForwardCall,
): Promise<void> {
  const { request, response, client, entry } = exchange
  const slices = context.slicing.open()
  const held = context.byteBudget.open(context.queueKeys.of(client))
  try {
    const { maxBodyBytes } = context.limits()
    const body = await readRelayedBody(request, maxBodyBytes, held)
    const plain =
      body === undefined ? undefined : await decompressed(request, body, maxBodyBytes, held, slices)
    const form = toWriteRequest(exchange)
    const write = plain === undefined ? undefined : await readRelayed(form, plain, context.limits(), slices)
    noteRead(exchange, write)
    const keys = write?.keys ?? []
    const offer = isV2Offered(context, exchange)
      ? (reply: CapturedReply) => offerWrite(context, exchange, { request: form, body: plain, keys }, reply)
      : undefined
    const queueKey = context.queueKeys.of(client)
    const wasAccepted = queueKey.isAccepted()
    const noteKeys = (): void => {
      if (offer === undefined && queueKey.isAccepted())
        context.comparison.wrote(client.partner, entry.stage, () => keys)
    }
    // Before V2 has it where that is possible: a comparison may read one of its marks at once.
    if (wasAccepted) noteKeys()
    const reading = { slices, onBytes: (count: number) => held.take(count) }
    const relaying = { exchange, v2, call: { ...call, body }, offer, reading }
    if (write === undefined) await relay(context, relaying)
    else await relayKnown(context, relaying, form, write, slices)
    if (!wasAccepted) noteKeys()
  } finally {
    releaseAfterReply(held, response)
  }
}

function noteRead({ note }: LegacyExchange, write: RelayedWrite | undefined): void {
  if (write === undefined) note.unreadable()
  else note.decoded(() => write.keys.map((key, at) => ({ key, code: write.codes[at] })))
}

async function relayKnown(
  context: ProxyContext,
  relaying: Relaying,
  form: WriteRequest,
  write: RelayedWrite,
  slices: Slices,
): Promise<void> {
  const { client, entry, receivedMs, response } = relaying.exchange
  const known = entry.known === 'keys' ? 'keys' : 'identity'
  const recordWithinMs = entry.stage === 'canary' && known === 'keys' ? undefined : RECORD_WITHIN_MS[known]
  const isSlow = known === 'keys' ? () => entry.isStoreAnswering() : undefined
  // At `legacy` nothing that V2 was sent is looked up.
  const resendOf = entry.stage !== 'legacy' && client.partner.replaysV2 ? 0 : undefined
  const relayed: RelayedRequest = {
    ...{ client, write, receivedMs, known, recordWithinMs, isSlow, resendOf },
    ...relaying.reading,
  }
  if (!isKnowable(context, relayed)) {
    await relay(context, relaying)
    return
  }
  let begun = await beginRelayed(context, relayed)
  while (begun.kind === 'sent') {
    if (await answerFromV2(context, relaying, form, write, begun.batches, slices)) return
    begun = await beginRelayed(context, { ...relayed, resendOf: begun.batches[0] })
  }
  switch (begun.kind) {
    case 'known':
      await answerFromV3(context, relaying, form, write, begun.batch, slices)
      return
    case 'late':
      context.noteUnrecorded(client.partner.id)
      await relayLate(context, relaying, begun.ended)
      return
    case 'new':
      if (known === 'keys' && !(await mayBeSent(context, relaying, begun.relayed, write))) return
      await relayAndSettle(context, relaying, begun.relayed)
      onceWritten(response, () => context.journal.answered(begun.relayed.batch))
  }
}

/** Waits for older records of the keys; false where the client left meanwhile. */
async function mayBeSent(
  context: ProxyContext,
  { exchange, v2 }: Relaying,
  relayed: RelayedBatch,
  { keys }: RelayedWrite,
): Promise<boolean> {
  const { response, client, path } = exchange
  const { partner } = client
  const readers = { v3: toV3Reader(context, exchange), v2: createV2MarkReader(v2, path, client.client) }
  const deadlineMs = context.clock.nowMs() + partner.budgetMs
  let isSent = false
  const giveWay = watchGiveWay(context, relayed.batch, context.queueKeys.of(client))
  try {
    const waited = waitForOlder(context, relayed.batch, keys, { partner, readers, deadlineMs })
    const gaveWay = giveWay === undefined ? [] : [giveWay.due.then(() => false)]
    const inTime = await Promise.race([waited, relayed.lost(), ...gaveWay])
    isSent = inTime && !response.destroyed
    if (!inTime) throw stillUnsettled()
  } finally {
    giveWay?.stop()
    if (!isSent) await relayed.ended({ kind: 'notSent' })
  }
  return isSent
}

function toV3Reader(context: ProxyContext, { request, client }: LegacyExchange): MarkReaders['v3'] {
  let asked: Promise<Authorisation> | undefined
  return async (query, timeoutMs) => {
    try {
      asked ??= context.authorise(request, client)
      const { rateLimit, credentials } = await asked
      const queueKey = context.queueKeys.of(client)
      return await readPaced(context, rateLimit, queueKey, credentials, query, timeoutMs)
    } catch (cause) {
      if (cause instanceof AdapterError) return { kind: 'overdue' }
      throw cause
    }
  }
}

/** The end of the reply waits for the journal, but not for long: its client may send a newer mark to V3 then. */
async function relayAndSettle(
  context: ProxyContext,
  relaying: Relaying,
  relayed: RelayedBatch,
): Promise<void> {
  let end: RelayEnd = { kind: 'notSent' }
  try {
    end = await relay(context, relaying, (reply) => {
      const kept = relayed.ended({ kind: 'answered', reply })
      const late = new Promise<void>((resolve) => void context.clock.after(SETTLE_WITHIN_MS, resolve))
      return Promise.race([kept, late])
    })
  } finally {
    await relayed.ended(end)
  }
}

async function relayLate(
  context: ProxyContext,
  relaying: Relaying,
  ended: (end: RelayEnd) => void,
): Promise<void> {
  let end: RelayEnd = { kind: 'notSent' }
  try {
    end = await relay(context, relaying, () => undefined)
  } finally {
    ended(end)
  }
}

/** `onReply`: the last bytes of the reply wait for it; undefined: no copy of the reply is made. */
async function relay(
  context: ProxyContext,
  { exchange, v2, call, offer, reading }: Relaying,
  onReply?: ForwardCall['onReplyEnd'],
): Promise<RelayEnd> {
  const { request, response, entry } = exchange
  const sent = { ...call, beforeSend: () => expectCurrent(entry) }
  const copied = { keepGoing: true, captureBytes: MAX_KEPT_BYTES, onReplyEnd: onReply ?? (() => undefined) }
  const outcome = await context.relays
    .of(v2)
    .forward(request, response, onReply === undefined && offer === undefined ? sent : { ...sent, ...copied })
  await exchange.trial.relayed(outcome, request, reading)
  if (outcome.kind === 'answered' && outcome.reply !== undefined) offer?.(outcome.reply)
  if (outcome.kind === 'answered' && outcome.reply !== undefined)
    return { kind: 'answered', reply: outcome.reply }
  return { kind: outcome.kind === 'notSent' ? 'notSent' : 'lost' }
}

/** A write ends on the side where it began. */
async function answerFromV3(
  context: ProxyContext,
  { exchange }: Relaying,
  form: WriteRequest,
  { body }: RelayedWrite,
  batch: number,
  slices: Slices,
): Promise<void> {
  const { request, response, client, receivedMs } = exchange
  exchange.copy?.servedBy('v3')
  const authorisation = await context.authorise(request, client)
  const plan = await planWrites(form, body, client.partner, receivedMs, context.limits(), slices)
  const answered = await replayBatch(context, authorisation, batch, openBatchReply(response, plan), slices)
  if (answered === undefined)
    throw new AdapterError(
      'ADP_JOURNAL_LOST',
      'This batch came before and may have been applied; its answer is not kept any longer. Nothing was sent again.',
    )
  const planned = { request: form, body, receivedMs, plan, slices }
  endBatchReply(context, response, client.partner.id, planned, answered)
}

/** False: V2 is to be sent the batch again. */
async function answerFromV2(
  context: ProxyContext,
  { exchange, v2, reading }: Relaying,
  form: WriteRequest,
  { body }: RelayedWrite,
  batches: readonly number[],
  slices: Slices,
): Promise<boolean> {
  const { response, client, path, receivedMs, copy } = exchange
  const plan = await planWrites(form, body, client.partner, receivedMs, context.limits(), slices)
  const readMark = createV2MarkReader(v2, path, client.client)
  const answered = await replayOnV2(context, { client, plan, batches, readMark, reading })
  if (answered === undefined) return false
  copy?.servedBy('v2')
  endBatchReply(
    context,
    response,
    client.partner.id,
    { request: form, body, receivedMs, plan, slices },
    answered,
  )
  return true
}

function toWriteRequest({ request, kind: asked, prefix, client }: LegacyExchange): WriteRequest {
  const { partner } = client
  const kind = asked === 'record' ? 'record' : 'batch'
  const layout = kind === 'record' ? 'flat' : layoutFor(partner, request)
  return {
    kind,
    contentType: request.headers['content-type'],
    serviceHosts: kind === 'record' ? undefined : partner.serviceHosts,
    context: `${serviceRoot(request, prefix)}/V2/Attendance/$metadata#AttendanceRecords/$entity`,
    layout,
    recordsUrl: recordsUrlOf(request, { kind, layout }),
    dataEnvelope: partner.dataEnvelope,
    msgtypeResponse: partner.msgtypeResponse,
    errorMessages: partner.errorMessages,
    prefer: '',
    accept: '',
  }
}

const stillUnsettled = (): AdapterError =>
  new AdapterError(
    'ADP_BUDGET_EXCEEDED',
    'An earlier mark of one of these learners and events was sent to V3, and nothing says yet what became of it. Nothing was sent; send the request again later.',
  )
