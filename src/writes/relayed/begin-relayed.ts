import { AdapterError, errorRules } from '../../errors.ts'
import type { Clock } from '../../clock.ts'
import type { Slices } from '../../http/slices.ts'
import type { BeginResult, NewBatch } from '../../journal/index.ts'
import type { Client } from '../../partners/partner.ts'
import type { WriteContext } from '../context.ts'
import { digestIds, digestRequest } from '../stored-request.ts'
import type { RelayedWrite } from './read-relayed.ts'
import { hadKeptReply, outcomesOf, type RelayEnd } from './relayed-outcomes.ts'

/** The parts of the context that a write for V2 needs. */
export type RelayContext = Pick<
  WriteContext,
  'journal' | 'predecessors' | 'active' | 'clock' | 'upstream' | 'newId' | 'verdicts' | 'events' | 'queueKeys'
>

/** A write that V2 is about to be sent. */
export interface RelayedRequest {
  readonly client: Client
  readonly write: RelayedWrite
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
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
  readonly slices: Slices
  /** Called with the bytes that it takes to read V2's reply; may throw to refuse more. */
  readonly onBytes?: ((count: number) => void) | undefined
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
export type BegunRelayed =
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
export async function beginRelayed(context: RelayContext, request: RelayedRequest): Promise<BegunRelayed> {
  const { journal, clock } = context
  const asked = journal.begin(await toNewBatch(context, request))
  const opened = asked.then((begun) => open(context, request, begun))
  const { recordWithinMs } = request
  if (recordWithinMs === undefined) return opened
  const late = openPatience(clock, recordWithinMs, request.isSlow)
  const inTime = await Promise.race([opened.catch(ignoreUnavailable), late.over]).finally(late.cancel)
  if (inTime !== undefined) return inTime
  const end = async (how: RelayEnd): Promise<void> => {
    const begun = await opened.catch(() => undefined)
    if (begun?.kind === 'new') await begun.relayed.ended(how)
  }
  return { kind: 'late', ended: (how) => void end(how) }
}

/** How long V2 is kept waiting: `over` resolves at its end. */
function openPatience(
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
export function isKnowable({ journal }: Pick<WriteContext, 'journal'>, request: RelayedRequest): boolean {
  return journal.durable && (request.known === 'keys' || request.write.ids !== undefined)
}

function ignoreUnavailable(cause: unknown): undefined {
  if (cause instanceof AdapterError && errorRules[cause.code].class === 'internal') return undefined
  throw cause
}

async function toNewBatch(
  { upstream, newId, queueKeys }: RelayContext,
  { client, write, receivedMs, known, resendOf, slices }: RelayedRequest,
): Promise<NewBatch> {
  const { partner, owner } = client
  const { ids, body, keys } = write
  // A key of its own keeps nothing waiting.
  const unread = (position: number): string => `v2 ${position} ${newId()}`
  const own = known === 'keys' && keys.length > 0 ? keys : [undefined]
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
    newcomer: !queueKeys.of(client).isAccepted(),
    records: own.map((key, position) => ({ key: key ?? unread(position) })),
  }
}

function open(
  { journal, predecessors, active, verdicts }: RelayContext,
  { client, write, known, slices, onBytes }: RelayedRequest,
  begun: BeginResult,
): Exclude<BegunRelayed, { kind: 'late' }> {
  const { batch } = begun
  if (begun.kind === 'known') {
    const { side, earlier = [] } = begun
    return side === undefined ? { kind: 'known', batch } : { kind: 'sent', batches: [batch, ...earlier] }
  }
  const each = known === 'keys' && write.keys.length > 0 ? write.keys.length : undefined
  const positions = Array.from({ length: each ?? 1 }, (_, position) => position)
  const claim = active.claim(batch, positions, positions.length, begun.lease)
  const settle = async (end: RelayEnd): Promise<void> => {
    try {
      if (end.kind === 'answered' && (end.reply.status === 401 || end.reply.status === 403)) {
        await journal.forget(batch, positions.length, begun.lease)
        predecessors.settled(batch, positions)
        return
      }
      const outcomes = await outcomesOf(end, write.kind, each, { slices, onBytes })
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
