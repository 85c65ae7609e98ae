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
  hadKeptReply,
  outcomesOf,
  type ReadMarkOfV2,
  type RelayEnd,
  type ReplyReading,
} from './relayed-reply.ts'
import { createResolveUnknown } from './resolve-unknown.ts'
import { inOrder, type RunSession, settleOutcomes } from './run.ts'
import type { SessionOptions } from './write-session.ts'
import { notApplied } from './settlement-policy.ts'

/** How the journal is to know a write that V2 is about to be sent. */
interface RelayOptions {
  /** With keys it is in the order of their records; without, it is only known again. */
  readonly known: 'identity' | 'keys'
  /**
   * How long V2 may be kept waiting for the journal, ms: it is sent a write that the journal does not know then. Undefined: it never is,
   * since V3 may be posting records of the same keys.
   */
  readonly recordWithinMs: number | undefined
  /** True while the journal is known to be slow rather than gone: then V2 waits longer, up to `LONGEST_MS`. Default: it is not known. */
  readonly isSlow?: (() => boolean) | undefined
  /** See `NewBatch`. */
  readonly resendOf?: number | undefined
  /** For reading V2's reply. */
  readonly reading: ReplyReading
}

/** A write of V2 in the journal. */
export interface RelayedBatch {
  readonly batch: number
  /** Keeps how it ended, once; where that fails, recovery finds the batch and ends it as unknown. Never rejects. */
  readonly ended: (end: RelayEnd) => Promise<void>
  /** Resolves false once its lease is lost. */
  readonly lost: () => Promise<false>
  /**
   * To be called right before its first byte is sent to V2. Error `ADP_JOURNAL_UNAVAILABLE` where its lease is lost: by now another instance
   * may have sent V2 the same batch, and a newer one of its keys after that.
   */
  readonly expectHeld: () => void
}

/**
 * `known`: V3 has served this batch, so V2 is not sent it. `sent`: V2 was sent it before under these numbers, the newest first.
 * `late`: the journal does not say in time whether it is new.
 */
type BegunRelayed =
  | ({ readonly kind: 'new' } & RelayedBatch)
  | { readonly kind: 'known'; readonly batch: number }
  | { readonly kind: 'sent'; readonly batches: readonly [number, ...number[]] }
  | ({ readonly kind: 'late' } & Pick<RelayedBatch, 'ended'>)

const NOTHING = new Uint8Array(0)
/** The longest that V2 is kept waiting for a slow journal. */
const LONGEST_MS = 5_000
/** How often it is asked whether the journal is still slow rather than gone. */
const ASK_MS = 100

/**
 * Makes a write known to the journal before V2 is sent it, so that V3 never posts it again and the order of its keys holds. Of its values
 * nothing is kept. Errors: those of `Journal.begin`, where `recordWithinMs` is undefined. Otherwise a journal that is late or cannot be
 * reached is not an error; what it keeps all the same gets its end.
 */
export async function beginRelayed(
  context: WriteContext,
  client: Client,
  planned: PlannedRequest,
  options: RelayOptions,
): Promise<BegunRelayed> {
  const asked = context.journal.begin(await toNewBatch(context, client, planned, options))
  const opened = asked.then((begun) => open(context, client, planned, options, begun))
  const { recordWithinMs, isSlow } = options
  if (recordWithinMs === undefined) return opened
  const late = openTimeout(context.clock, recordWithinMs, isSlow)
  const inTime = await Promise.race([opened.catch(ignoreUnavailable), late.over]).finally(late.cancel)
  if (inTime !== undefined) return inTime
  // Nothing waits for it: the journal may be gone.
  const ended = (end: RelayEnd): Promise<void> => {
    void opened.then(
      (begun) => (begun.kind === 'new' ? begun.ended(end) : undefined),
      () => undefined,
    )
    return Promise.resolve()
  }
  return { kind: 'late', ended }
}

/** How long V2 is kept waiting: `over` resolves at its end. */
function openTimeout(
  clock: Pick<Clock, 'after'>,
  withinMs: number,
  isSlow: (() => boolean) | undefined,
): { readonly over: Promise<undefined>; readonly cancel: () => void } {
  let cancel = (): void => undefined
  const over = new Promise<undefined>((resolve) => {
    const wait = (ms: number, waitedMs: number): void => {
      cancel = clock.after(ms, () => {
        if (waitedMs + ms < LONGEST_MS && isSlow?.() === true) wait(ASK_MS, waitedMs + ms)
        else resolve(undefined)
      })
    }
    wait(withinMs, 0)
  })
  return { over, cancel: () => cancel() }
}

/** True for a write that is worth keeping: one without ids is never recognised, and without keys has no order. */
export function isKnowable(
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
  // A key of its own keeps nothing waiting.
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

function open(
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
  const settle = async (end: RelayEnd): Promise<void> => {
    try {
      if (end.kind === 'answered' && (end.reply.status === 401 || end.reply.status === 403)) {
        await journal.forget(batch, positions.length, begun.lease)
        predecessors.settled(batch, positions)
        return
      }
      const outcomes = await outcomesOf(end, request.kind, each, reading)
      await settleOutcomes(context, begun, outcomes)
      if (outcomes.some(hadKeptReply)) verdicts.accept(batch, client.identity)
    } catch (cause) {
      if (!(cause instanceof AdapterError)) throw cause
    } finally {
      claim.end()
    }
  }
  let settled: Promise<void> | undefined
  const ended = (end: RelayEnd): Promise<void> => (settled ??= settle(end))
  const expectHeld = (): void => {
    if (journal.lease() === begun.lease) return
    throw new AdapterError(
      'ADP_JOURNAL_UNAVAILABLE',
      'This instance lost its lease on the journal before V2 was sent the request. Nothing was sent; send the request again.',
    )
  }
  return { kind: 'new', batch, ended, lost: () => claim.lost(), expectHeld }
}

/** What reads older records back. */
interface OlderReading {
  readonly partner: Partner
  readonly readV3: (query: string, timeoutMs: number) => Promise<ReadOutcome>
  readonly readV2: ReadMarkOfV2
  /** By the clock, ms. */
  readonly deadlineMs: number
}

/** A pause before the journal is asked again, where another run has an older record or it could not be read. */
const AGAIN_AFTER_MS = 200
/** V2 is read where V3 has not answered within this time, or this share of what is left. */
const V3_WITHIN_MS = 2_000
const V3_SHARE = 1 / 3
/** Where a partner's lost writes are not read back otherwise. */
const UNSCHEDULED_MS = [0, 1_000]

/**
 * Waits until V2 may be sent a batch: no older record of its keys is under way on V3, on any instance, and none has an unknown outcome.
 * Those are read back here and now. False: the time was over first, so V2 must not be sent it. Errors: those of the journal.
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

/** The others of a key have the same older ones; a record without a key has none. */
function firstOfEach(batch: number, keys: readonly string[]): readonly RecordRef[] {
  const first = new Map<string, RecordRef>()
  for (const [position, key] of keys.entries())
    if (key !== '' && !first.has(key)) first.set(key, { batch, position })
  return [...first.values()]
}

/**
 * Finds out what became of records of one batch whose outcome is unknown, before V2 is sent a newer one of their keys. They are read and
 * never posted: V2 serves now. False: nothing was found out, here or because another run has them.
 */
async function readOlder(
  context: WriteContext,
  batch: number,
  positions: readonly number[],
  { partner, readV3, readV2, deadlineMs }: OlderReading,
): Promise<boolean> {
  const { journal, active, clock } = context
  const stored = await journal.load(batch).catch(unlessDamaged)
  // The rules of another partner are not known here.
  if (stored?.payload === undefined || stored.partner !== partner.id || active.has(batch)) return false
  const opened = await journal.reopen(batch, positions, undefined, 'beforeRelay')
  if (opened.after.size === 0) return false
  const leftMs = (): number => deadlineMs - clock.nowMs()
  let isV3Silent = false
  const read = async (query: string, record: V3Record): Promise<ReadOutcome> => {
    if (!isV3Silent) {
      const seen = await readV3(query, Math.min(V3_WITHIN_MS, leftMs() * V3_SHARE))
      if (seen.kind === 'read') return seen
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
      // What was settled as unknown cannot arrive any more.
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
