import { setTimeout as delay } from 'node:timers/promises'

import { Client } from 'undici'

import type { Random } from '../../../src/sandbox/random.ts'
import { batchPath, type BatchText } from '../../support/batch-request.ts'
import {
  type Answer,
  type ChangedPart,
  holdsOutcome,
  isFinal,
  isFinalAnswer,
  type WriteHistory,
} from './history.ts'
import { boundaryIn, sendHeader } from '../proxy/forwards.ts'
import { partsOf, readAnswers, type WholeReply } from './read-answers.ts'

/** A batch with the answers that its client has seen. */
export interface SentBatch {
  readonly number: number
  readonly text: BatchText
  /** The bearer token of the client that owns the batch. Every request with the batch carries this token. */
  readonly token: string
  /** The school that the requests of the client name, or `undefined` if they name none. */
  readonly school: string | undefined
  readonly writes: readonly WriteHistory[]
  /** The positions, in the sequence of the run, at which the client sent the batch. */
  readonly sends: number[]
  /** The bytes of each final part as they first arrived, by position. */
  readonly finalParts: (TextOfPart | undefined)[]
  /** The final parts that arrived again with other bytes. */
  readonly changed: ChangedPart[]
  /** The first reply in which every record had its final answer. */
  finished: WholeReply | undefined
}

interface TextOfPart {
  readonly text: string
  /** True if V2 wrote the part. */
  readonly isOfV2: boolean
}

export interface ClientOptions {
  readonly url: string
  readonly random: Random
  /** Returns the next position in the sequence of the run. */
  readonly tick: () => number
  /** The number of times that the client sends a batch before it goes on to the next batch. */
  readonly maxAttempts: number
  /** The longest pause between two attempts. */
  readonly maxDelayMs: number
  /** The time after which a waiting client gives up and resends the batch. */
  readonly patienceMs: number
  /** The share of the attempts that the client gives up within 40 ms, while the batch is still in progress. */
  readonly impatience: number
  /** Returns false if this batch must not be sent any more. Default: every batch may be sent. */
  readonly maySend?: (batch: SentBatch) => boolean
  /** Returns true for the delimiter of a reply that V2 wrote. Default: V2 wrote no reply. */
  readonly isOfV2?: (boundary: string) => boolean
}

/** One V2 client with one connection and one batch at a time. */
export interface LoadClient {
  /** Sends the batch until every record has its final answer or the attempts (default `maxAttempts`) are spent. */
  deliver(batch: SentBatch, attempts?: number): Promise<void>
  /**
   * Sends a finished batch once more. Returns true if the reply equalled the first reply byte for byte, or `undefined` if no reply with an
   * outcome arrived.
   */
  replay(batch: SentBatch): Promise<boolean | undefined>
  close(): Promise<void>
}

const IMPATIENT_MS = 40

/** Creates a client that retries like a legacy client: the client sends the same bytes after any reply that is not final. */
export function createLoadClient(options: ClientOptions): LoadClient {
  const { random, tick, maySend = () => true, isOfV2 = () => false } = options
  const client = new Client(options.url, { headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 2_000 })
  const send = async (batch: SentBatch, patienceMs: number): Promise<WholeReply | undefined> => {
    const at = tick()
    batch.sends.push(at)
    try {
      const reply = await client.request({
        path: batchPath,
        method: 'POST',
        headers: { ...credentialsOf(batch), ...batch.text.headers, [sendHeader]: String(at) },
        body: batch.text.body,
        signal: AbortSignal.timeout(patienceMs),
      })
      const body = Buffer.from(await reply.body.arrayBuffer())
      return { status: reply.statusCode, contentType: String(reply.headers['content-type']), body }
    } catch {
      return undefined // The client got no answer, because it gave up or the connection was refused, reset or cut.
    }
  }
  const attempt = async (batch: SentBatch): Promise<void> => {
    const hasty = random.chance(options.impatience)
    const reply = await send(batch, hasty ? 1 + random.below(IMPATIENT_MS) : options.patienceMs)
    const answers = reply === undefined ? undefined : readWhole(reply, batch)
    if (reply === undefined || answers === undefined) return
    compareParts(batch, answers, textsOf(reply, isOfV2))
    const at = tick()
    for (const [index, answer] of answers.entries()) batch.writes[index]?.answers.push({ at, answer })
    if (answers.every(isFinalAnswer)) batch.finished = reply
  }
  return {
    deliver: async (batch, attempts = options.maxAttempts) => {
      for (let count = 0; count < attempts && batch.finished === undefined; count += 1) {
        if (count > 0) await delay(random.below(options.maxDelayMs))
        if (count > 0 && !maySend(batch)) return
        await attempt(batch)
      }
    },
    replay: async (batch) => {
      const reply = await send(batch, options.patienceMs)
      const { finished } = batch
      const answers = reply === undefined ? undefined : readWhole(reply, batch)
      if (reply === undefined || answers === undefined || finished === undefined) return undefined
      // A reply without an outcome does not count: the adapter cannot reach its journal, or cannot reach V3 to check the token. Every other
      // reply counts, even the error that the stored reply has expired.
      return answers.every(holdsOutcome) ? isSame(reply, finished, isOfV2) : undefined
    },
    close: () => client.destroy(),
  }
}

function credentialsOf({ token, school }: SentBatch): Record<string, string> {
  return {
    'Ocp-Apim-Subscription-Key': 'sandbox',
    Authorization: `Bearer ${token}`,
    ...(school === undefined ? {} : { [schoolHeader]: school }),
  }
}

/** The header in which a request names its school. */
export const schoolHeader = 'X-School'

/** Returns the answers in a reply, or `undefined` if the reply breaks off. */
function readWhole(reply: WholeReply, { writes }: SentBatch): Answer[] | undefined {
  try {
    return readAnswers(reply, writes.length)
  } catch {
    return undefined
  }
}

/**
 * Compares the final parts of two replies: a final part must return unchanged, even if other outcomes changed. Without an adapter V2
 * applies a resent batch again and gives a new answer, so two answers that V2 itself wrote may differ.
 */
function compareParts(batch: SentBatch, answers: readonly Answer[], parts: readonly TextOfPart[]): void {
  for (const [index, answer] of answers.entries()) {
    const first = batch.finalParts[index]
    const later = parts[index] ?? { text: '', isOfV2: false }
    if (first === undefined) {
      if (isFinalAnswer(answer)) batch.finalParts[index] = later
    } else if (holdsOutcome(answer) && first.text !== later.text && !(first.isOfV2 && later.isOfV2)) {
      const name = batch.writes[index]?.write.name ?? ''
      if (batch.changed.every((each) => each.name !== name))
        batch.changed.push({ name, first: first.text, later: later.text })
    }
  }
}

type IsOfV2 = (boundary: string) => boolean

function textsOf(reply: WholeReply, isOfV2: IsOfV2): TextOfPart[] {
  return partsOf(reply).map((text) => ({ text, isOfV2: isReplyOfV2(reply, isOfV2) }))
}

function isReplyOfV2({ contentType = '' }: WholeReply, isOfV2: IsOfV2): boolean {
  return isOfV2(boundaryIn(contentType) ?? '')
}

function isSame(one: WholeReply, other: WholeReply, isOfV2: IsOfV2): boolean {
  if (isReplyOfV2(one, isOfV2) && isReplyOfV2(other, isOfV2)) return true
  return one.status === other.status && one.contentType === other.contentType && one.body.equals(other.body)
}

export function isDelivered({ writes }: SentBatch): boolean {
  return writes.every(isFinal)
}
