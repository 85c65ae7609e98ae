import { setTimeout as delay } from 'node:timers/promises'

import type { Random } from '../../../src/sandbox/random.ts'
import { createRandom } from '../../../src/sandbox/random.ts'
import { batchOf, guid } from '../../support/batch-request.ts'
import {
  type ClientOptions,
  createLoadClient,
  isDelivered,
  type LoadClient,
  type SentBatch,
} from './client.ts'
import type { History } from './history.ts'
import { createWrites, flatRecordOf, type Samples, type Write } from './write.ts'

export interface LoadOptions extends Pick<
  ClientOptions,
  'url' | 'maxAttempts' | 'maxDelayMs' | 'patienceMs' | 'impatience' | 'isOfV2'
> {
  readonly seed: number
  /** Numbers requests and answers. Default: a new sequence. */
  readonly tick?: () => number
  readonly samples: Samples
  /** Tokens that the clients use in turn. Default: the sandbox's token with all permissions. */
  readonly tokens?: readonly string[]
  /** Schools that the clients name in turn. Default: none. */
  readonly schools?: readonly string[]
  /**
   * Returns when V2 last received a write, by `performance.now()`, or `undefined` (the default) if it did not. A client must not resend the
   * write once `sendAgainMs` have passed since then, however often it tried in between.
   */
  readonly relayedMs?: (write: Write) => number | undefined
  readonly sendAgainMs?: number
  readonly connections: number
  readonly maxRecords: number
  /** The longest pause of a client before each batch. Default: none, so that a client sends as fast as it is answered. */
  readonly thinkMs?: number
  /** True if each write has a different learner or session. */
  readonly uniqueKeys?: boolean
  /** The share of finished batches that are resent once more, and the longest delay before the resend. Default: no delay. */
  readonly replayShare: number
  readonly replayAfterMs?: number
}

/** The client settings for tests that need no particular settings. */
export const usualLoad = {
  connections: 8,
  maxRecords: 20,
  maxAttempts: 10,
  maxDelayMs: 250,
  patienceMs: 20_000,
  impatience: 0.03,
  replayShare: 0.05,
} as const satisfies Partial<LoadOptions>

/** The maximum number of resends of a finished batch after the faults have ended. */
const SURE_REPLAYS = 8

export interface Load {
  records(): number
  /** Lets every client finish its current batch, and then sends no new batch. */
  stop(): Promise<void>
  /** Resends every batch that has records without a final answer. Call this after `stop`. */
  sendOpen(): Promise<void>
  /**
   * Resends the last `count` finished batches, each until a reply with an outcome arrives, at most `SURE_REPLAYS` times. Call this after
   * `stop`, when there are no more faults.
   */
  replayLast(count: number): Promise<void>
  history(): History
  close(): Promise<void>
}

/** Creates a counter that numbers the events of a run, so that all observers agree on the order of the events. */
export function createSequence(): () => number {
  let now = 0
  return () => (now += 1)
}

/** Starts clients that post batches until they are stopped. */
export function startLoad(options: LoadOptions): Load {
  const {
    seed,
    connections,
    maxRecords,
    tick = createSequence(),
    tokens = ['sandbox'],
    schools = [],
  } = options
  const { relayedMs = () => undefined, sendAgainMs = Infinity } = options
  const nextWrite = createWrites(createRandom(seed, 'writes'), options.samples, options.uniqueKeys)
  const sizes = createRandom(seed, 'sizes')
  const batches: SentBatch[] = []
  const changedReplays: number[] = []
  const missingReplays: number[] = []
  let replays = 0
  let stopped = false
  const maySend = ({ writes }: SentBatch): boolean =>
    writes.every(({ write }) => performance.now() - (relayedMs(write) ?? Infinity) < sendAgainMs)
  const nextBatch = (token: string, school: string | undefined): SentBatch => {
    const writes = Array.from({ length: 1 + sizes.below(maxRecords) }, nextWrite)
    const batch = composeBatch({ seed, number: batches.length, token, school }, writes, tick())
    batches.push(batch)
    return batch
  }
  /** Resolves with false if no reply with an outcome arrived. */
  const replay = async (client: LoadClient, batch: SentBatch): Promise<boolean> => {
    if (!maySend(batch)) return true
    const same = await client.replay(batch)
    if (same !== undefined) replays += 1
    if (same === false) changedReplays.push(batch.number)
    return same !== undefined
  }
  const replayForSure = async (client: LoadClient, batch: SentBatch): Promise<void> => {
    for (let count = 0; count < SURE_REPLAYS; count += 1) {
      if (await replay(client, batch)) return
      await delay(options.maxDelayMs)
    }
    missingReplays.push(batch.number)
  }
  const work = async (
    client: LoadClient,
    random: Random,
    token: string,
    school: string | undefined,
  ): Promise<void> => {
    while (!stopped) {
      if (options.thinkMs !== undefined) await delay(random.below(options.thinkMs))
      const batch = nextBatch(token, school)
      await client.deliver(batch)
      if (batch.finished === undefined || !random.chance(options.replayShare)) continue
      if (options.replayAfterMs !== undefined) await delay(random.below(options.replayAfterMs))
      await replay(client, batch)
    }
  }
  const clients = Array.from({ length: connections }, (_, number) => {
    const random = createRandom(seed, `client ${number}`)
    const client = createLoadClient({ ...options, random, tick, maySend })
    const token = tokens[number % tokens.length] ?? ''
    return { client, work: work(client, random, token, schools[number % Math.max(1, schools.length)]) }
  })
  /** Lets all clients work on a queue until it is empty. */
  const drain = async (
    queue: SentBatch[],
    handle: (client: LoadClient, batch: SentBatch) => Promise<void>,
  ): Promise<void> => {
    const takeTurns = async (client: LoadClient): Promise<void> => {
      for (let batch = queue.shift(); batch !== undefined; batch = queue.shift()) await handle(client, batch)
    }
    await Promise.all(clients.map(({ client }) => takeTurns(client)))
  }
  const finishWork = async (): Promise<void> => {
    stopped = true
    await Promise.all(clients.map((each) => each.work))
  }
  return {
    records: () => batches.reduce((sum, { writes }) => sum + writes.length, 0),
    stop: finishWork,
    sendOpen: () =>
      drain(
        batches.filter((batch) => !isDelivered(batch) && maySend(batch)),
        (client, batch) => client.deliver(batch, 1),
      ),
    replayLast: (count) =>
      drain(batches.filter(({ finished }) => finished !== undefined).slice(-count), replayForSure),
    history: () => ({
      writes: batches.flatMap((batch) =>
        maySend(batch) ? batch.writes : batch.writes.map((own) => ({ ...own, isAbandoned: true })),
      ),
      replays,
      changedReplays,
      missingReplays,
      changedParts: batches.flatMap(({ changed }) => changed),
    }),
    close: async () => {
      await finishWork()
      await Promise.all(clients.map(({ client }) => client.close()))
    },
  }
}

/** Composes a batch. Its ids differ from the ids of all other batches of the same seed. */
export function composeBatch(
  { seed, number, ...client }: Pick<SentBatch, 'number' | 'token' | 'school'> & { readonly seed: number },
  writes: readonly Write[],
  sentAt: number,
): SentBatch {
  const id = guid(seed * 10_000_000 + number)
  const text = batchOf(writes.map(flatRecordOf), { batch: `batch_${id}`, changeset: `changeset_${id}` })
  const sends: number[] = []
  return {
    number,
    text,
    ...client,
    sends,
    finished: undefined,
    finalParts: [],
    changed: [],
    writes: writes.map((write, position) => ({
      ...{ write, token: client.token, school: client.school, batch: number, position, sentAt, sends },
      answers: [],
    })),
  }
}
