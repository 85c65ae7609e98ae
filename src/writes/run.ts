import { AdapterError } from '../errors.ts'
import type { Predecessors, RecordRef, Settled } from '../journal/index.ts'
import type { BatchTally } from '../observability/events.ts'
import type { PartReply } from '../v2/index.ts'
import type { SendPermission, UpstreamError } from '../v3/index.ts'
import { type Claim, markOrphaned } from './active-records.ts'
import type { WriteContext } from './context.ts'
import type { Plan } from './plan.ts'
import { mayBePosted, type Reply, type ReplyContext, toReplyPart } from './reply.ts'
import { canNoLongerArrive, settlementOf, toDenialError, unsentOutcome } from './settlement-policy.ts'
import type { WriteSession, WriteTask } from './write-session.ts'

/** The records of one batch that this process posts or reads back now. The batch may be new, resent or left by another run. */
export interface Run {
  readonly batch: number
  readonly lease: number
  readonly receivedMs: number
  readonly plan: Plan
  /** The positions of the records in ascending order. Records that the plan refuses are skipped. */
  readonly positions: Iterable<number>
  /** Maps a position to the nearest older open records of the same key. */
  readonly after: Predecessors
  /**
   * Returns true for a record that may have been applied. The run reads this record back first, and posts it only if V3 does not show its
   * mark.
   */
  readonly mayBeApplied: (position: number) => boolean
  /** Maps the position of each record that was unknown before it was opened to its reason (see `canNoLongerArrive`). Default: empty. */
  readonly unknown?: ReadonlyMap<number, string> | undefined
  /** True if there may be newer marks that the journal does not know. V3 is then read before any record is posted. Default false. */
  readonly isChecked?: boolean
  /** True if this request began the batch. If V3 denies the credentials of the request, the journal forgets the batch. Default false. */
  readonly isNew?: boolean
  /** Returns true for a record that recovery retries. A denied request must not end the retries of this record. Default: always false. */
  readonly wasParked?: (position: number) => boolean
  /** False in recovery, which itself retries records that were not applied. */
  readonly clientWaits: boolean
  readonly replyContext: ReplyContext
}

/** A run with more records than this yields to the event loop between the claim of its records and the creation of its tasks. */
const MANY = 1_000
/** Time in milliseconds that an outcome may wait for other outcomes of its run to share a commit. The last outcome of a run never waits. */
const GATHER_MS = 10

export type RunSession = Pick<
  WriteSession,
  'partner' | 'postRecords' | 'budgetMs' | 'withdrawn' | 'executingSince'
>

/**
 * Claims the records of a run, posts them in order, settles them, then sets their parts of the reply, if there is a reply. Throws
 * `ADP_OUTCOME_UNKNOWN` if an outcome could not be stored; the records then stay open, and recovery finishes them. Throws
 * `ADP_JOURNAL_LOST` if this instance lost the batch, which recovery or another instance then finishes. The client may already have parts
 * of the reply when these two errors are thrown.
 *
 * If V3 denied the credentials before any other outcome, and the status line of the reply is not sent yet, throws one of these errors:
 * `ADP_TOKEN` or `ADP_FORBIDDEN` for credentials of the client, `ADP_V3_CREDENTIALS` for credentials of the configuration, or the error of
 * the token endpoint if the token could not be renewed.
 */
export async function runRecords(
  context: WriteContext,
  session: RunSession,
  run: Run,
  reply?: Reply,
): Promise<BatchTally> {
  const { active, clock, failures, journal, orphans, slicing, nowMs } = context
  const { batch, lease, plan, clientWaits, receivedMs, replyContext } = run
  const { outcomesShown } = plan
  const wanted = [...run.positions].filter((position) => plan.records[position]?.record !== undefined)
  const claim = active.claim(batch, wanted, lease)
  const leaveToRecovery = (positions: readonly number[], sinceMs = clock.nowMs()): void => {
    if (positions.length === 0) return
    const after = new Map(positions.map((position) => [position, run.after.get(position) ?? []]))
    markOrphaned(orphans, batch, after, lease, sinceMs)
  }
  /** Maps the position of a record that V3 may still be executing to the time since which no record of its `$batch` has appeared. */
  const executing = new Map<number, number>()
  const leaveExecuting = (): void =>
    executing.forEach((sinceMs, position) => leaveToRecovery([position], sinceMs))
  const own = wanted.filter((position) => claim.has(position))
  // Another run of this process works on the records that could not be claimed. Recovery checks their state once that run has ended.
  leaveToRecovery(wanted.filter((position) => !claim.has(position)))
  const tally: BatchTally = { accepted: 0, refused: 0, notApplied: 0, unknown: 0 }
  let denied: Denied
  try {
    if (own.length > MANY) await slicing.open().next()
    const settler = createSettler(context, run, own.length, claim, reply)
    const tasks = toTasks(context, run, own, claim, settler, session)
    const permission: SendPermission = {
      // Once an outcome could not be stored, nothing more may be sent, because recovery then finishes all records.
      maySend: () => journal.lease() === lease && !settler.hasFailed(),
      renew: async () => !settler.hasFailed() && (journal.lease() ?? (await journal.renewLease())) === lease,
    }
    const onOutcome: Parameters<RunSession['postRecords']>[2] = (position, outcome) => {
      const planned = plan.records[position]
      if (planned === undefined) return
      const part = toReplyPart(planned, outcome, replyContext)
      tally[outcome.kind] += 1
      if ('reason' in outcome) tally.reason = outcome.reason
      if (outcome.kind === 'unknown' && outcome.reason === 'stillExecuting') {
        // Leaves the record open, tells the client that the outcome is unknown, and lets recovery read the record back.
        executing.set(position, outcome.sinceMs ?? clock.nowMs())
        settler.skip(position)
        reply?.setPart(position, part)
        return
      }
      const followUp = { outcomesShown, clientWaits, receivedMs, nowMs: nowMs() }
      settler.settle(settlementOf(position, outcome, part, followUp), part)
    }
    const denial = await failures
      .run(() => session.postRecords(tasks, permission, onOutcome))
      .catch((cause: unknown) => {
        // Recovery finishes the records after this error, so the rest of this run must neither send nor settle any record.
        settler.fail()
        throw cause
      })
    await settler.flushed()
    leaveExecuting()
    if (executing.size > 0) reply?.begin()
    if (denial === undefined) return tally
    if (run.isNew === true) {
      await journal.forget(batch, own.length, lease)
      context.predecessors.settled(batch, own)
    } else {
      const open = tasks.filter((task) => session.executingSince(task) !== undefined)
      for (const task of open) leaveToRecovery([task.position], session.executingSince(task))
      const ended = tasks.filter((task) => !open.includes(task))
      await settleOutcomes(
        context,
        run,
        ended.map((task) => deniedSettlement(context, run, task)),
      )
    }
    denied = { denial, tasks, isOpen: (task) => session.executingSince(task) !== undefined }
  } catch (cause) {
    // After ADP_JOURNAL_LOST, another instance usually owns the batch. Otherwise recovery of this instance finds the batch in the journal.
    if (cause instanceof AdapterError && cause.code === 'ADP_JOURNAL_LOST') throw cause
    // While this instance lives, no other instance takes over the records, so its own recovery must finish them.
    leaveToRecovery(own)
    throw new AdapterError(
      'ADP_OUTCOME_UNKNOWN',
      'The outcomes of the records could not be stored. The records may have been applied. Resend the same batch to get the result.',
      { cause },
    )
  } finally {
    claim.releaseAll()
  }
  if (reply !== undefined) answerDenial(context, session, run, denied, tally, reply)
  return tally
}

/** Makes outcomes durable, then releases the newer records that wait for the settled records. Throws the errors of `Journal.settle`. */
export async function settleOutcomes(
  { journal, predecessors }: Pick<WriteContext, 'journal' | 'predecessors'>,
  { batch, lease }: Pick<Run, 'batch' | 'lease'>,
  outcomes: readonly Settled[],
): Promise<void> {
  await journal.settle(batch, outcomes, lease)
  predecessors.settled(
    batch,
    outcomes.map(({ position }) => position),
  )
}

/** Returns true while the journal may have lost records that were sent. Every record is then read back before it is posted. */
function isReadBackFirst({ journal, nowMs }: Pick<WriteContext, 'journal' | 'nowMs'>): boolean {
  return nowMs() < journal.readBackUntilMs
}

export function inOrder(positions: Iterable<number>): number[] {
  return [...positions].sort((one, other) => one - other)
}

/**
 * Creates the tasks of the records in their order. A record waits for older records of its key in other batches, and for the durable
 * outcome of the previous record of its key in the same batch. Without the second wait, the process could end after both posts and before
 * the first outcome is durable. The second mark would then hide the first mark from the read-back.
 */
function toTasks(
  context: WriteContext,
  { batch, plan, after, mayBeApplied, unknown, isChecked }: Run,
  positions: readonly number[],
  claim: Claim,
  settler: Settler,
  { budgetMs, withdrawn }: RunSession,
): WriteTask[] {
  const tasks: WriteTask[] = []
  const readAll = isReadBackFirst(context)
  const gaveWay = withdrawn.then(() => false)
  // Reuses the wait of a list of older records, because the records of one key share one list.
  const waits = new Map<readonly RecordRef[], Promise<boolean>>()
  /** Maps each key to its last record so far, and to the promise for which that record waits. */
  const last = new Map<string, { readonly position: number; readonly wait: Promise<boolean> | undefined }>()
  for (const position of positions) {
    const planned = plan.records[position]
    if (planned?.record === undefined) continue
    const { record, key } = planned
    const older = after.get(position)
    let wait = older === undefined ? undefined : waits.get(older)
    if (wait === undefined && older !== undefined && older.length > 0) {
      const ended = context.predecessors.untilFirst({ batch, position }, older, budgetMs)
      wait = Promise.race([ended, claim.lost(), gaveWay])
      waits.set(older, wait)
    }
    const before = last.get(key)
    if (before !== undefined) {
      // Includes the wait of the previous record, because an older record for which that record waited in vain may still be open.
      const all = Promise.all([wait, before.wait, settler.durable(before.position)])
      wait = all.then((waits) => !waits.includes(false))
    }
    last.set(key, { position, wait })
    const first = readAll || mayBeApplied(position) ? 'readBack' : isChecked === true ? 'check' : 'post'
    const isPast = !readAll && canNoLongerArrive(unknown?.get(position))
    tasks.push({ position, record, receivedMs: plan.markedMs, first, isPast, after: wait })
  }
  return tasks
}

type Settler = ReturnType<typeof createSettler>

/** Creates the settler of a run, which makes outcomes durable in groups. It sets the part of a record only once its outcome is durable. */
function createSettler(
  context: WriteContext,
  run: Run,
  count: number,
  claim: Claim,
  reply: Reply | undefined,
) {
  let pending: { readonly settled: Settled; readonly part: PartReply }[] = []
  let left = count
  let cancelTimer: (() => void) | undefined
  let flushing: Promise<void> | undefined
  let failed = false
  const successors = new Map<number, (isDurable: boolean) => void>()
  const flush = async (): Promise<void> => {
    // Waits one turn of the event loop, so that all outcomes that undici reads from its sockets in this turn share a commit.
    await new Promise((resolve) => setImmediate(resolve))
    while (pending.length > 0) {
      const group = pending
      pending = []
      await settleOutcomes(
        context,
        run,
        group.map(({ settled }) => settled),
      )
      claim.release(group.map(({ settled }) => settled.position))
      for (const { settled, part } of group) reply?.setPart(settled.position, part)
      reply?.begin()
      for (const { settled } of group) successors.get(settled.position)?.(true)
    }
    flushing = undefined
  }
  const begin = (): void => {
    cancelTimer?.()
    cancelTimer = undefined
    if (flushing !== undefined || pending.length === 0) return
    flushing = flush()
    // Only stops the run, because `flushed` awaits the same promise and rejects with its error.
    flushing.catch(fail)
  }
  const fail = (): void => {
    failed = true
    for (const release of successors.values()) release(false)
  }
  return {
    settle: (settled: Settled, part: PartReply): void => {
      if (failed) return
      pending.push({ settled, part })
      left -= 1
      if (left <= 0 || successors.has(settled.position)) begin()
      else if (flushing === undefined) cancelTimer ??= context.clock.after(GATHER_MS, begin)
    },
    /** Resolves with true once the outcome of the record is durable, or with false if it is not stored. Must be called before `settle`. */
    durable: (position: number): Promise<boolean> =>
      new Promise((resolve) => {
        successors.set(position, resolve)
      }),
    /** Counts a record that stays open. Later records of its key in this run are not sent. */
    skip: (position: number): void => {
      left -= 1
      if (left <= 0) begin()
      successors.get(position)?.(false)
    },
    fail,
    /** Returns true once the run has failed or the journal could not store an outcome. Later outcomes are not stored either. */
    hasFailed: (): boolean => failed,
    /** Resolves once every settled outcome is durable and reported. Rejects if an outcome cannot be stored. */
    flushed: async (): Promise<void> => {
      begin()
      while (flushing !== undefined) await flushing
    },
  }
}

/** Returns the settlement of a record whose credentials V3 denied: its client may resend the record, or recovery retries it. */
function deniedSettlement(context: WriteContext, run: Run, { position, first }: WriteTask): Settled {
  const reason = 'denied'
  const { plan, clientWaits, receivedMs, replyContext } = run
  if (clientWaits && first === 'post' && run.wasParked?.(position) !== true)
    return { position, state: 'notApplied', answer: undefined, reason, retry: 'resend' }
  const planned = plan.records[position]
  if (planned === undefined) return { position, state: 'unknown', answer: undefined, reason }
  const outcome = unsentOutcome(first, 'stopped')
  const part = toReplyPart(planned, outcome, replyContext)
  const { outcomesShown } = plan
  const followUp = { outcomesShown, clientWaits: false, receivedMs, nowMs: context.nowMs() }
  return { ...settlementOf(position, outcome, part, followUp), reason }
}

interface Denied {
  readonly denial: UpstreamError | AdapterError
  readonly tasks: readonly WriteTask[]
  /** Returns true for a record that V3 may still be executing, and that recovery therefore reads back. */
  readonly isOpen: (task: WriteTask) => boolean
}

/** Throws the denial if the status line is not sent yet. If the client already has parts from other runs, answers each record instead. */
function answerDenial(
  { events }: WriteContext,
  { partner }: RunSession,
  run: Run,
  { denial, tasks, isOpen }: Denied,
  tally: BatchTally,
  reply: Reply,
): void {
  const isOwn = denial instanceof AdapterError
  if (!isOwn) events.credentialsDenied({ status: denial.status, partner })
  if (!reply.isStatusSent()) throw isOwn ? denial : toDenialError(denial)
  for (const task of tasks) {
    const { position, first } = task
    const planned = run.plan.records[position]
    if (planned === undefined) continue
    // "Not applied" may be answered only if neither V3 nor recovery can still apply the record (product contract 3).
    const outcome = isOpen(task)
      ? ({ kind: 'unknown', reason: 'stillExecuting' } as const)
      : run.wasParked?.(position) === true
        ? mayBePosted
        : unsentOutcome(first, 'stopped')
    tally[outcome.kind] += 1
    reply.setPart(position, toReplyPart(planned, outcome, run.replyContext))
  }
}
