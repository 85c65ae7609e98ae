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

/** The records of one batch that this process posts now: of a new batch, a repeated one, or an orphaned one. */
export interface Run {
  /** The batch's number in the journal. */
  readonly batch: number
  /** The lease under which its records were opened. */
  readonly lease: number
  /** Milliseconds since the epoch. */
  readonly receivedMs: number
  readonly plan: Plan
  /** Positions of the records, ascending; the run leaves out those that the plan refuses. */
  readonly positions: Iterable<number>
  /** The nearest older open record of the same key, for each position that has one. */
  readonly after: Predecessors
  /** True for a record that may have been applied before: V3 is read first, and it is posted only if it is not there. */
  readonly mayHaveLeft: (position: number) => boolean
  /** Of records that were unknown before they were opened, why; see `canNoLongerArrive`. Default: none. */
  readonly unknown?: ReadonlyMap<number, string> | undefined
  /** True: there may be newer marks that the journal does not know, so V3 is read before any record is posted. Default false. */
  readonly isChecked?: boolean
  /** True: it was begun by this request. Where its credentials are denied, nothing of it is kept. Default false. */
  readonly isNew?: boolean
  /** True for a record that is tried again in the background, which no denied request ends. Default: none. */
  readonly wasParked?: (position: number) => boolean
  /** False in recovery, which retries records that were not applied. */
  readonly clientWaits: boolean
  readonly replyContext: ReplyContext
}

/** A run of more records is claimed in one turn of the event loop and begun in the next. */
const MANY = 1_000
/**
 * How long an outcome may wait for others of its run, so that they share one commit. Parts wait longer for each other in the
 * reply; the last outcome of a run waits for nothing.
 */
const GATHER_MS = 10

/** The part of a session that a run uses. */
export type RunSession = Pick<
  WriteSession,
  'partner' | 'postRecords' | 'budgetMs' | 'withdrawn' | 'executingSince'
>

/**
 * The way of records from the journal to their durable outcomes: claim, post in order, settle, then report to the reply, if there is
 * one. Every batch takes it. Errors: `ADP_OUTCOME_UNKNOWN` when an outcome could not be kept: its records stay open, and recovery
 * finishes them; `ADP_JOURNAL_LOST` when another instance does; with a reply whose status line has not left, `ADP_TOKEN` or
 * `ADP_FORBIDDEN` when V3 denied the credentials before it accepted anything, and the token endpoint's when it has no other token.
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
  const leave = (positions: readonly number[], sinceMs = clock.nowMs()): void => {
    if (positions.length === 0) return
    const after = new Map(positions.map((position) => [position, run.after.get(position) ?? []]))
    markOrphaned(orphans, batch, after, lease, sinceMs)
  }
  /** Records that V3 may still be executing, with the time by the clock since which none of their `$batch` was seen. */
  const executing = new Map<number, number>()
  const leaveExecuting = (): void => executing.forEach((sinceMs, position) => leave([position], sinceMs))
  const own = wanted.filter((position) => claim.has(position))
  // Another run of this process has the others: recovery reads their state when that run has ended.
  leave(wanted.filter((position) => !claim.has(position)))
  const tally: BatchTally = { accepted: 0, refused: 0, notApplied: 0, unknown: 0 }
  let denied: Denied
  try {
    if (own.length > MANY) await slicing.open().next()
    const settler = createSettler(context, run, own.length, claim, reply)
    const tasks = toTasks(context, run, own, claim, settler, session)
    const permission: SendPermission = {
      // Recovery takes records whose outcome could not be stored.
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
        // It stays open: its client is told that its outcome is unknown, and recovery finds it out.
        executing.set(position, outcome.sinceMs ?? clock.nowMs())
        settler.leave(position)
        reply?.settle(position, part)
        return
      }
      const followUp = { outcomesShown, clientWaits, receivedMs, nowMs: nowMs() }
      settler.settle(settlementOf(position, outcome, part, followUp), part)
    }
    const denial = await failures
      .run(() => session.postRecords(tasks, permission, onOutcome))
      .catch((cause: unknown) => {
        // What is left of the run must neither send nor settle anything: recovery has the records now.
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
      for (const task of open) leave([task.position], session.executingSince(task))
      const ended = tasks.filter((task) => !open.includes(task))
      await settleOutcomes(
        context,
        run,
        ended.map((task) => deniedSettlement(context, run, task)),
      )
    }
    denied = { denial, tasks, isOpen: (task) => session.executingSince(task) !== undefined }
  } catch (cause) {
    // Where this instance has the batch all the same, recovery finds it.
    if (cause instanceof AdapterError && cause.code === 'ADP_JOURNAL_LOST') throw cause
    // As long as this instance lives, no other takes them over.
    leave(own)
    throw new AdapterError(
      'ADP_OUTCOME_UNKNOWN',
      'The records were sent, and their outcome could not be stored. Send the same batch again for its answer.',
      { cause },
    )
  } finally {
    claim.end()
  }
  if (reply !== undefined) answerDenial(context, session, run, denied, tally, reply)
  return tally
}

/** Makes outcomes durable, and lets newer records go on that wait for these. Errors: those of `Journal.settle`. */
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

/** True while the journal may have lost earlier records: every record is read back before it is posted. */
function isReadBackFirst({ journal, nowMs }: Pick<WriteContext, 'journal' | 'nowMs'>): boolean {
  return nowMs() < journal.readBackUntilMs
}

/** Positions in the order of the batch. */
export function inOrder(positions: Iterable<number>): number[] {
  return [...positions].sort((one, other) => one - other)
}

/**
 * The tasks of the records in their order. A record waits for the older ones of its key in other batches, and for the durable
 * outcome of the one before it in its own: if the process ended between the two, the mark of the second would hide that of the
 * first, and both would stay open.
 */
function toTasks(
  context: WriteContext,
  { batch, plan, after, mayHaveLeft, unknown, isChecked }: Run,
  positions: readonly number[],
  claim: Claim,
  settler: Settler,
  { budgetMs, withdrawn }: RunSession,
): WriteTask[] {
  const tasks: WriteTask[] = []
  const readAll = isReadBackFirst(context)
  const gaveWay = withdrawn.then(() => false)
  // Records of one key share one list: only the oldest of them waits for it.
  const waits = new Map<readonly RecordRef[], Promise<boolean>>()
  /** The last record of each key, with what it waits for. */
  const last = new Map<string, { readonly position: number; readonly ready: Promise<boolean> | undefined }>()
  for (const position of positions) {
    const planned = plan.records[position]
    if (planned?.record === undefined) continue
    const { record, key } = planned
    const older = after.get(position)
    let ready = older === undefined ? undefined : waits.get(older)
    if (ready === undefined && older !== undefined && older.length > 0) {
      const ended = context.predecessors.untilFirst({ batch, position }, older, budgetMs)
      ready = Promise.race([ended, claim.lost(), gaveWay])
      waits.set(older, ready)
    }
    const before = last.get(key)
    if (before !== undefined) {
      // Where the one before was not sent for an older one, that one may be open still.
      const all = Promise.all([ready, before.ready, settler.durable(before.position)])
      ready = all.then((waits) => !waits.includes(false))
    }
    last.set(key, { position, ready })
    const first = readAll || mayHaveLeft(position) ? 'readBack' : isChecked === true ? 'check' : 'post'
    const isPast = !readAll && canNoLongerArrive(unknown?.get(position))
    tasks.push({ position, record, receivedMs: plan.markedMs, first, isPast, after: ready })
  }
  return tasks
}

type Settler = ReturnType<typeof createSettler>

/** Creates what makes the outcomes of a run with `count` records durable, in groups. The reply gets a part after its outcome is durable, never before. */
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
    // The outcomes that undici reads from its sockets in one turn of the loop go together.
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
      for (const { settled, part } of group) reply?.settle(settled.position, part)
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
    // `flushed` rejects with the same cause.
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
    /** Resolves true once the outcome of this record is durable, false when it cannot be kept. Call it before `settle`. */
    durable: (position: number): Promise<boolean> =>
      new Promise((resolve) => {
        successors.set(position, resolve)
      }),
    /** Ends the wait for a record whose outcome is not settled now: those behind it are not sent. */
    leave: (position: number): void => {
      left -= 1
      if (left <= 0) begin()
      successors.get(position)?.(false)
    },
    /** Ends the run: no outcome is settled any more. */
    fail,
    /** True once the run has failed, or the journal could not keep an outcome; it keeps no later one of this run either. */
    hasFailed: (): boolean => failed,
    /** Resolves when every settled outcome is durable and reported; rejects when one cannot be kept. */
    flushed: async (): Promise<void> => {
      begin()
      while (flushing !== undefined) await flushing
    },
  }
}

/** Nothing was applied: the client may repeat the batch with other credentials, or recovery retries with newer ones. */
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

/** V3, or the token endpoint, denied the credentials for all records. */
interface Denied {
  readonly denial: UpstreamError | AdapterError
  readonly tasks: readonly WriteTask[]
  /** True for a record that V3 may still be executing: recovery reads it back. */
  readonly isOpen: (task: WriteTask) => boolean
}

/** Throws the denial, or answers record by record where others sent the same batch and this client has read their answers. */
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
  if (!reply.hasLeft()) throw isOwn ? denial : toDenialError(denial)
  for (const task of tasks) {
    const { position, first } = task
    const planned = run.plan.records[position]
    if (planned === undefined) continue
    // "Not applied" is said only of a record that nobody will post (product contract 3).
    const outcome = isOpen(task)
      ? ({ kind: 'unknown', reason: 'stillExecuting' } as const)
      : run.wasParked?.(position) === true
        ? mayBePosted
        : unsentOutcome(first, 'stopped')
    tally[outcome.kind] += 1
    reply.settle(position, toReplyPart(planned, outcome, run.replyContext))
  }
}
