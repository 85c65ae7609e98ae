import type { Clock } from '../clock.ts'
import { AdapterError, errorRules } from '../errors.ts'
import type { BeginResult, NewBatch, StoredBatch } from '../journal/index.ts'
import type { Client } from '../partners/partner.ts'
import type { WriteContext } from './context.ts'
import type { PlannedRequest } from './plan.ts'
import { hadKeptReply, outcomesOf, type RelayEnd, type ReplyReading } from './relayed-reply.ts'
import { digestIds, digestRequest } from './stored-request.ts'

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
  ended(end: RelayEnd): Promise<void>
  /** Resolves false once its lease is lost. */
  lost(): Promise<false>
}

/**
 * `known`: V3 has served this batch, so V2 is not sent it. `sent`: V2 was sent it before under these numbers, the newest first.
 * `late`: the journal does not say in time whether it is new.
 */
type BegunRelayed =
  | { readonly kind: 'new'; readonly relayed: RelayedBatch }
  | { readonly kind: 'known'; readonly batch: number }
  | { readonly kind: 'sent'; readonly batches: readonly [number, ...number[]] }
  | { readonly kind: 'late'; readonly ended: (end: RelayEnd) => void }

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
  const end = async (how: RelayEnd): Promise<void> => {
    const begun = await opened.catch(() => undefined)
    if (begun?.kind === 'new') await begun.relayed.ended(how)
  }
  return { kind: 'late', ended: (how) => void end(how) }
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
  { body, plan, receivedMs, slices }: PlannedRequest,
  { known, resendOf }: RelayOptions,
): Promise<NewBatch> {
  const { partner, owner } = client
  const { ids, records } = plan
  // A key of its own keeps nothing waiting.
  const unread = (position: number): string => `v2 ${position} ${newId()}`
  const keys = known === 'keys' && records.length > 0 ? records.map(({ key }) => key) : ['']
  return {
    side: 'v2',
    resendOf,
    partner: partner.id,
    owner,
    ids: ids === undefined ? undefined : digestIds(owner, ids),
    content: await digestRequest(owner, upstream, ids?.boundary, body, slices),
    receivedMs,
    payload: NOTHING,
    credentials: undefined,
    newcomer: !accepted.queueKey(client).isAccepted(),
    records: keys.map((key, position) => ({ key: key === '' ? unread(position) : key })),
  }
}

function open(
  { journal, predecessors, active, verdicts }: WriteContext,
  client: Client,
  { request, plan }: PlannedRequest,
  { known, reading }: RelayOptions,
  begun: BeginResult,
): Exclude<BegunRelayed, { kind: 'late' }> {
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
      await journal.settle(batch, outcomes, begun.lease)
      predecessors.settled(batch, positions)
      if (outcomes.some(hadKeptReply)) verdicts.accept(batch, client.identity)
    } catch (cause) {
      if (!(cause instanceof AdapterError)) throw cause
    } finally {
      claim.end()
    }
  }
  let settled: Promise<void> | undefined
  const ended = (end: RelayEnd): Promise<void> => (settled ??= settle(end))
  return { kind: 'new', relayed: { batch, ended, lost: () => claim.lost() } }
}

/**
 * Ends orphans of a batch that V2 was sent, once a lost write would not be read back any longer: V2 may have applied them, and nothing
 * of them is ever posted. Their client has no answer and may send the batch again. Resolves false while it is too early. Errors: those of
 * `Journal.settle`.
 */
export async function endRelayed(
  { journal, orphans, predecessors, clock }: WriteContext,
  { batch, records }: StoredBatch,
  readBackMs: number,
): Promise<boolean> {
  const orphan = orphans.get(batch)
  if (orphan === undefined) return true
  if (clock.nowMs() < orphan.sinceMs + readBackMs) return false
  const positions = [...orphan.after.keys()].filter((position) => records[position]?.state === 'open')
  const end = { state: 'unknown', answer: undefined, reason: 'stopped', retry: 'resend' } as const
  await journal.settle(
    batch,
    positions.map((position) => ({ position, ...end })),
    orphan.lease,
  )
  orphans.delete(batch)
  predecessors.settled(batch, positions)
  return true
}
