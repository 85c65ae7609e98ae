import type { Clock } from '../clock.ts'
import { AdapterError, errorRules } from '../errors.ts'
import type { BeginResult, NewBatch, RecordRef } from '../journal/index.ts'
import { isDamagedBatch } from '../journal/store-error.ts'
import type { Client, Partner } from '../partners/partner.ts'
import type { PostOutcome, ReadOutcome, V3Record } from '../v3/index.ts'
import type { WriteContext } from './context.ts'
import { runStored } from './finish-batch.ts'
import { identityOf, type PlannedRequest } from './plan.ts'
import {
  hasStoredReply,
  outcomesOf,
  type ReadMarkOfV2,
  type RelayEnd,
  type ReplyReading,
} from './relayed-reply.ts'
import { createResolveUnknown } from './resolve-unknown.ts'
import { inOrder, type RunSession, settleOutcomes } from './run.ts'
import type { SessionOptions } from './write-session.ts'
import { notApplied } from './settlement-policy.ts'

interface RelayOptions {
  /** What the journal stores. `identity` is enough to recognise a resend; `keys` also orders the write among records of the same keys. */
  readonly known: 'identity' | 'keys'
  /**
   * How long a write to V2 may wait for the journal, in milliseconds. After that time V2 gets the write without an entry in the journal.
   * `undefined` means no limit, which is required while V3 may be getting records of the same keys.
   */
  readonly recordWithinMs: number | undefined
  /** Returns true while the journal is slow but reachable. The write then waits for the journal up to `LONGEST_MS`. Default: never slow. */
  readonly isSlow?: (() => boolean) | undefined
  readonly resendOf?: number | undefined
  readonly reading: ReplyReading
}

export interface RelayedBatch {
  readonly batch: number
  /**
   * Stores how the request ended. If the journal cannot store the end, recovery ends the batch as unknown. Must be called. Only the first
   * call has an effect. Never rejects.
   */
  readonly recordEnd: (end: RelayEnd) => Promise<void>
  /** Resolves with false once the lease of the batch is lost. */
  readonly lost: () => Promise<false>
  /**
   * Checks the lease of the batch. Must be called immediately before the first byte is sent to V2. Throws `ADP_JOURNAL_UNAVAILABLE` if the
   * lease is lost, because another instance may already have sent V2 the same batch and a newer batch of the same keys.
   */
  readonly expectLease: () => void
}

/**
 * The result of beginning a write to V2. `known`: V3 has served this batch, so the batch is not sent to V2. `sent`: the batch was sent to
 * V2 before, under the numbers in `batches`, newest first. `late`: the journal did not say in time whether the batch is new.
 */
type BegunRelayed =
  | ({ readonly kind: 'new' } & RelayedBatch)
  | { readonly kind: 'known'; readonly batch: number }
  | { readonly kind: 'sent'; readonly batches: readonly [number, ...number[]] }
  | ({ readonly kind: 'late' } & Pick<RelayedBatch, 'recordEnd'>)

const NOTHING = new Uint8Array(0)
const LONGEST_MS = 5_000
const ASK_MS = 100

/**
 * Records a write in the journal before it is sent to V2, so that a resend is recognised and the records of each key stay in order. Does
 * not store the body. Throws the errors of `Journal.begin` if `recordWithinMs` is `undefined`. With `recordWithinMs`, a late or unreachable
 * journal is not an error. If the journal stores the write late, `recordEnd` still stores the outcome.
 */
export async function beginRelayed(
  context: WriteContext,
  client: Client,
  planned: PlannedRequest,
  options: RelayOptions,
): Promise<BegunRelayed> {
  const asked = context.journal.begin(await toNewBatch(context, client, planned, options))
  const opened = asked.then((begun) => openBatch(context, client, planned, options, begun))
  const { recordWithinMs, isSlow } = options
  if (recordWithinMs === undefined) return opened
  const late = startTimeout(context.clock, recordWithinMs, isSlow)
  const inTime = await Promise.race([opened.catch(ignoreUnavailable), late.elapsed]).finally(late.cancel)
  if (inTime !== undefined) return inTime
  // Resolves at once, so that the request does not wait for a journal that may be unavailable.
  const recordEnd = (end: RelayEnd): Promise<void> => {
    void opened.then(
      (begun) => (begun.kind === 'new' ? begun.recordEnd(end) : undefined),
      () => undefined,
    )
    return Promise.resolve()
  }
  return { kind: 'late', recordEnd }
}

/** Starts a timer of `withinMs`, extended up to `LONGEST_MS` while `isSlow` returns true. `elapsed` resolves when the timer expires. */
function startTimeout(
  clock: Pick<Clock, 'after'>,
  withinMs: number,
  isSlow: (() => boolean) | undefined,
): { readonly elapsed: Promise<undefined>; readonly cancel: () => void } {
  let cancel = (): void => undefined
  const elapsed = new Promise<undefined>((resolve) => {
    const wait = (ms: number, waitedMs: number): void => {
      cancel = clock.after(ms, () => {
        if (waitedMs + ms < LONGEST_MS && isSlow?.() === true) wait(ASK_MS, waitedMs + ms)
        else resolve(undefined)
      })
    }
    wait(withinMs, 0)
  })
  return { elapsed, cancel: () => cancel() }
}

/** Returns true if the journal can use the write: it recognises a resend by the ids of a batch, and orders a write by its keys. */
export function isWorthRecording(
  { journal }: Pick<WriteContext, 'journal'>,
  { plan }: PlannedRequest,
  known: RelayOptions['known'],
): boolean {
  return journal.durable && (known === 'keys' || plan.ids !== undefined)
}

function ignoreUnavailable(cause: unknown): undefined {
  if (cause instanceof AdapterError && errorRules[cause.code].class === 'internal') return undefined
  throw cause
}

async function toNewBatch(
  { upstream, newId, accepted }: WriteContext,
  client: Client,
  planned: PlannedRequest,
  { known, resendOf }: RelayOptions,
): Promise<NewBatch> {
  const { partner, owner } = client
  const { records } = planned.plan
  // A record without a readable key gets a unique key, so that no other record waits for it.
  const unread = (position: number): string => `v2 ${position} ${newId()}`
  const keys = known === 'keys' && records.length > 0 ? records.map(({ key }) => key) : ['']
  return {
    ...(await identityOf(owner, upstream, planned)),
    side: 'v2',
    resendOf,
    partner: partner.id,
    payload: NOTHING,
    credentials: undefined,
    newcomer: !accepted.queueKey(client).isAccepted(),
    records: keys.map((key, position) => ({ key: key === '' ? unread(position) : key })),
  }
}

function openBatch(
  context: WriteContext,
  client: Client,
  { request, plan }: PlannedRequest,
  { known, reading }: RelayOptions,
  begun: BeginResult,
): Exclude<BegunRelayed, { kind: 'late' }> {
  const { journal, predecessors, active, verdicts } = context
  const { batch } = begun
  if (begun.kind === 'known') {
    const { side, earlier = [] } = begun
    return side === undefined ? { kind: 'known', batch } : { kind: 'sent', batches: [batch, ...earlier] }
  }
  const each = known === 'keys' && plan.records.length > 0 ? plan.records.length : undefined
  const positions = Array.from({ length: each ?? 1 }, (_, position) => position)
  const claim = active.claim(batch, positions, begun.lease)
  const storeEnd = async (end: RelayEnd): Promise<void> => {
    try {
      if (end.kind === 'answered' && (end.reply.status === 401 || end.reply.status === 403)) {
        await journal.forget(batch, positions.length, begun.lease)
        predecessors.settled(batch, positions)
        return
      }
      const outcomes = await outcomesOf(end, request.kind, each, reading)
      await settleOutcomes(context, begun, outcomes)
      if (outcomes.some(hasStoredReply)) verdicts.accept(batch, client.identity)
    } catch (cause) {
      if (!(cause instanceof AdapterError)) throw cause
    } finally {
      claim.releaseAll()
    }
  }
  let settled: Promise<void> | undefined
  const recordEnd = (end: RelayEnd): Promise<void> => (settled ??= storeEnd(end))
  const expectLease = (): void => {
    if (journal.lease() === begun.lease) return
    throw new AdapterError(
      'ADP_JOURNAL_UNAVAILABLE',
      'This instance lost its lease on the journal before it sent the request to V2. This copy was not sent, but an earlier copy may have been applied. Send the same request again, unchanged.',
    )
  }
  return { kind: 'new', batch, recordEnd, lost: () => claim.lost(), expectLease }
}

interface OlderReading {
  readonly partner: Partner
  readonly readV3: (query: string, timeoutMs: number) => Promise<ReadOutcome>
  readonly readV2: ReadMarkOfV2
  /** The deadline in monotonic milliseconds. */
  readonly deadlineMs: number
}

/** Pause in milliseconds before the journal is read again, if no read-back found the outcome of an older record. */
const AGAIN_AFTER_MS = 200
/** V2 is read if V3 has not responded within this time or this share of the remaining time, whichever is shorter. */
const V3_WITHIN_MS = 2_000
const V3_SHARE = 1 / 3
/** Pauses before the reads in milliseconds, for partners whose lost writes are otherwise not read back. */
const UNSCHEDULED_MS = [0, 1_000]

/**
 * Waits until no older record with a key of the batch is unknown or in progress on V3, on any instance. Reads unknown records back. Returns
 * true once the batch may be sent to V2, and false if the deadline passed and the batch must not be sent. Throws the errors of the journal.
 */
export async function waitForOlder(
  context: WriteContext,
  batch: number,
  keys: readonly string[],
  reading: OlderReading,
): Promise<boolean> {
  const { journal, predecessors, clock } = context
  const own = firstOfEach(batch, keys)
  if (own.length === 0) return true
  for (;;) {
    const unsettled = await journal.olderUnsettled(own)
    if (unsettled.length === 0) return true
    const leftMs = reading.deadlineMs - clock.nowMs()
    if (leftMs <= 0) return false
    const open = unsettled.filter(({ isOpen }) => isOpen).map(({ older }) => older)
    if (open.length > 0) {
      if (!(await predecessors.until(open, leftMs))) return false
      continue
    }
    const byBatch = Map.groupBy(
      unsettled.map(({ older }) => older),
      (older) => older.batch,
    )
    const read = [...byBatch].map(([number, records]) => {
      const positions = new Set(records.map(({ position }) => position))
      return readOlder(context, number, inOrder(positions), reading)
    })
    if ((await Promise.all(read)).includes(true)) continue
    await new Promise<void>((resolve) => void clock.after(Math.min(AGAIN_AFTER_MS, leftMs), resolve))
  }
}

/**
 * Returns the first record of each key, because all records of a key wait for the same older records. Records without a key wait for none.
 */
function firstOfEach(batch: number, keys: readonly string[]): readonly RecordRef[] {
  const first = new Map<string, RecordRef>()
  for (const [position, key] of keys.entries())
    if (key !== '' && !first.has(key)) first.set(key, { batch, position })
  return [...first.values()]
}

/**
 * Reads back unknown records of one batch before a newer record of the same keys is sent to V2. The unknown records are never posted,
 * because V2 serves now. Returns false if no outcome was found, for example because another run works on the records.
 */
async function readOlder(
  context: WriteContext,
  batch: number,
  positions: readonly number[],
  { partner, readV3, readV2, deadlineMs }: OlderReading,
): Promise<boolean> {
  const { journal, active, clock } = context
  const stored = await journal.load(batch).catch(unlessDamaged)
  // Records of other partners cannot be read back here, because the rules of those partners are unknown.
  if (stored?.payload === undefined || stored.partner !== partner.id || active.has(batch)) return false
  const opened = await journal.reopen(batch, positions, undefined, 'beforeRelay')
  if (opened.after.size === 0) return false
  const leftMs = (): number => deadlineMs - clock.nowMs()
  let isV3Silent = false
  const read = async (query: string, record: V3Record): Promise<ReadOutcome> => {
    if (!isV3Silent) {
      const fromV3 = await readV3(query, Math.min(V3_WITHIN_MS, leftMs() * V3_SHARE))
      if (fromV3.kind === 'read') return fromV3
      isV3Silent = true
    }
    return readV2(record, leftMs())
  }
  const spacingMs = partner.readBackAfterMs.length === 0 ? UNSCHEDULED_MS : partner.readBackAfterMs
  const openSession = ({ wasOnV2 = false }: Pick<SessionOptions, 'wasOnV2'>): RunSession => {
    const executionOf = (): undefined => undefined
    const how = { batch, partner, wasOnV2, spacingMs, leftMs, read, executionOf, clientWaits: true }
    const readBack = createResolveUnknown(context, how)
    return {
      partner: partner.id,
      // No record is executing, because a record is settled as unknown only once it can no longer arrive at V3.
      executingSince: executionOf,
      budgetMs: leftMs(),
      withdrawn: new Promise(() => undefined),
      postRecords: async (tasks, _permission, onOutcome) => {
        const readOne = async (task: (typeof tasks)[number]): Promise<void> => {
          const sent = { how: 'before', toMs: clock.nowMs() } as const
          const post = (): Promise<PostOutcome> => Promise.resolve(notApplied('stopped'))
          onOutcome(task.position, await readBack(task, post, 'connectionLost', sent))
        }
        await Promise.all(tasks.map(readOne))
        return undefined
      },
    }
  }
  const tally = await runStored(context, stored, { partner, clientWaits: true, openSession }, opened)
  return tally.unknown < opened.after.size
}

function unlessDamaged(cause: unknown): undefined {
  if (isDamagedBatch(cause)) return undefined
  throw cause
}
