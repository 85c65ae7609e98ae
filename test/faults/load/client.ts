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

/** A batch with what its client has seen of it. */
export interface SentBatch {
  readonly number: number
  readonly text: BatchText
  /** The bearer token of the client that it belongs to; every request with it has this one. */
  readonly token: string
  /** The school that its requests name; undefined: none. */
  readonly school: string | undefined
  readonly writes: readonly WriteHistory[]
  /** When each of its requests left. */
  readonly sends: number[]
  /** The bytes of each part that was final, as they came first; by position. */
  readonly finalParts: (TextOfPart | undefined)[]
  /** Final parts that came again with other bytes. */
  readonly changed: ChangedPart[]
  /** The reply in which every record was final. */
  finished: WholeReply | undefined
}

/** A part of a reply. */
interface TextOfPart {
  readonly text: string
  /** V2 has written it. */
  readonly isOfV2: boolean
}

export interface ClientOptions {
  readonly url: string
  readonly random: Random
  /** The next position in the sequence of the run. */
  readonly tick: () => number
  /** How often the bytes of a batch are sent before the client goes on to the next. */
  readonly maxAttempts: number
  /** Between two attempts, at most. */
  readonly maxDelayMs: number
  /** A client that waits longer gives up and sends the batch again. */
  readonly patienceMs: number
  /** Share of the attempts that are given up after a moment, while the batch is still under way. */
  readonly impatience: number
  /** False: the bytes of this batch must not be sent any longer. Default: they always may. */
  readonly maySend?: (batch: SentBatch) => boolean
  /** True for the delimiter of a reply that V2 has written. Default: there is no V2. */
  readonly isOfV2?: (boundary: string) => boolean
}

/** One V2 client: one connection, one batch at a time. */
export interface LoadClient {
  /** Sends the bytes of a batch until every record has its final answer or the attempts (default `maxAttempts`) are spent. */
  deliver(batch: SentBatch, attempts?: number): Promise<void>
  /** Sends a finished batch once more; true: the reply was the first one byte for byte; undefined: none came that holds an outcome. */
  replay(batch: SentBatch): Promise<boolean | undefined>
  close(): Promise<void>
}

const IMPATIENT_MS = 40

/** Creates a client. Its retries are those of a legacy client: the same bytes, after any reply that is not final. */
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
      return undefined // refused, reset, cut off or given up: the client was told nothing
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
      // A journal that is away cannot answer, nor may a process that cannot ask the service about the token: neither is another
      // answer. Any other reply is, also one that says that the answer is not kept any longer.
      return answers.every(holdsOutcome) ? isSame(reply, finished, isOfV2) : undefined
    },
    close: () => client.destroy(),
  }
}

/** With a key of the sandbox. */
function credentialsOf({ token, school }: SentBatch): Record<string, string> {
  return {
    'Ocp-Apim-Subscription-Key': 'sandbox',
    Authorization: `Bearer ${token}`,
    ...(school === undefined ? {} : { [schoolHeader]: school }),
  }
}

/** Where a request names its school. */
export const schoolHeader = 'X-School'

/** A reply that breaks off tells nothing, also when the connection hides that it did. */
function readWhole(reply: WholeReply, { writes }: SentBatch): Answer[] | undefined {
  try {
    return readAnswers(reply, writes.length)
  } catch {
    return undefined
  }
}

/**
 * A part that was final must come again as it was, whatever became of the others. Without an adapter V2 applies a batch that comes again
 * once more, with an answer of its own: so two answers that V2 itself has written may differ.
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

/** Whether all that was sent has its final answer. */
export function isDelivered({ writes }: SentBatch): boolean {
  return writes.every(isFinal)
}
