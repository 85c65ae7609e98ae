import { AdapterError } from '../errors.ts'
import type { RecordRef, Predecessors, Settled } from '../journal/index.ts'
import type { BatchTally } from '../observability/events.ts'
import type { UpstreamError } from '../v3/index.ts'
import type { Claim } from './active-records.ts'
import type { WriteContext } from './context.ts'
import { deniedOutcome, toDenialError } from './denial.ts'
import { markOrphaned } from './orphans.ts'
import type { Plan } from './plan.ts'
import type { OnOutcome, Permission, WriteTask } from './post-records.ts'
import { toReplyPart, type ReplyContext } from './reply-part.ts'
import type { Reply } from './reply.ts'
import { settlementOf } from './settlement-policy.ts'
import { createSettler, type OnSettled, type Settler } from './settler.ts'
import type { WriteSession } from './write-session.ts'

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

/** How a run ended. */
export interface RunEnd {
  readonly tally: BatchTally
  /** V3, or the token endpoint, denied the credentials for all records. */
  readonly denial:
    { readonly cause: UpstreamError | AdapterError; readonly tasks: readonly WriteTask[] } | undefined
}

/** The part of the context that a run uses. */
export type RunContext = Pick<
  WriteContext,
  'journal' | 'predecessors' | 'active' | 'orphans' | 'clock' | 'nowMs' | 'slicing'
>

/** A run of more records is claimed in one turn of the event loop and begun in the next. */
const MANY = 1_000

/**
 * The way of records from the journal to their durable outcomes: claim, post in order, settle, then report. Every batch takes
 * it. Errors: `ADP_OUTCOME_UNKNOWN` when an outcome could not be kept: its records stay open, and recovery
 * finishes them; `ADP_JOURNAL_LOST` when another instance does.
 */
export async function runRecords(
  context: RunContext,
  session: Pick<WriteSession, 'postRecords' | 'budgetMs' | 'withdrawn'>,
  run: Run,
  onSettled: OnSettled,
): Promise<RunEnd> {
  const { batch, lease, plan } = run
  const positions = [...run.positions].filter((position) => plan.records[position]?.record !== undefined)
  const claim = context.active.claim(batch, positions, plan.records.length, lease)
  const own = claim.all ? positions : positions.filter((position) => claim.has(position))
  // Another run of this process has the others: recovery reads their state when that run has ended.
  if (!claim.all)
    leave(
      context,
      run,
      positions.filter((position) => !claim.has(position)),
    )
  try {
    if (own.length > MANY) await context.slicing.open().next()
    return await postAndSettle(context, session, run, own, claim, onSettled)
  } catch (cause) {
    // Where this instance has the batch all the same, recovery finds it.
    if (cause instanceof AdapterError && cause.code === 'ADP_JOURNAL_LOST') throw cause
    // As long as this instance lives, no other takes them over.
    leave(context, run, own)
    throw new AdapterError(
      'ADP_OUTCOME_UNKNOWN',
      'The records were sent, and their outcome could not be stored. Send the same batch again for its answer.',
      { cause },
    )
  } finally {
    claim.end()
  }
}

/**
 * Runs records and hands their parts to a reply. Errors: `ADP_TOKEN` or `ADP_FORBIDDEN` when V3 denied the credentials before
 * it accepted anything, the token endpoint's when it has no other token, both only while the status line has not left; and
 * those of `runRecords`.
 */
export async function runForClient(
  context: WriteContext,
  session: WriteSession,
  reply: Reply,
  run: Run,
): Promise<BatchTally> {
  const { tally, denial } = await runRecords(context, session, run, (position, part) => {
    reply.settle(position, part)
    reply.begin()
  })
  if (denial === undefined) return tally
  const { cause, tasks } = denial
  const isOwn = cause instanceof AdapterError
  if (!isOwn) context.events.credentialsDenied({ status: cause.status, partner: session.partner })
  if (!reply.hasLeft()) throw isOwn ? cause : toDenialError(cause)
  // Others sent the same batch, and this client has read their answers.
  for (const { position, first } of tasks) {
    const planned = run.plan.records[position]
    if (planned === undefined) continue
    const outcome = deniedOutcome(first)
    tally[outcome.kind] += 1
    reply.settle(position, toReplyPart(planned, outcome, run.replyContext))
  }
  return tally
}

/** True while the journal may have lost earlier records: every record is read back before it is posted. */
export function isReadBackFirst({ journal, nowMs }: Pick<WriteContext, 'journal' | 'nowMs'>): boolean {
  return nowMs() < journal.readBackUntilMs
}

/** Positions in the order of the batch. */
export function inOrder(positions: Iterable<number>): number[] {
  return [...positions].sort((one, other) => one - other)
}

async function postAndSettle(
  context: RunContext,
  session: Pick<WriteSession, 'postRecords' | 'budgetMs' | 'withdrawn'>,
  run: Run,
  positions: readonly number[],
  claim: Claim,
  onSettled: OnSettled,
): Promise<RunEnd> {
  const { journal, nowMs } = context
  const { batch, lease, plan, clientWaits, receivedMs } = run
  const tally: BatchTally = { accepted: 0, refused: 0, notApplied: 0, unknown: 0 }
  const settler = createSettler(context, { batch, lease, count: positions.length }, claim, onSettled)
  const tasks = toTasks(context, run, positions, claim, settler, session)
  const permission: Permission = {
    // Recovery takes records whose outcome could not be stored.
    maySend: () => journal.lease() === lease && !settler.hasFailed(),
    renew: async () => {
      const held = settler.hasFailed() ? 0 : (journal.lease() ?? (await journal.renewLease()))
      return held === lease
    },
  }
  const onOutcome: OnOutcome = (position, outcome) => {
    const planned = plan.records[position]
    if (planned === undefined) return
    const part = toReplyPart(planned, outcome, run.replyContext)
    const { outcomesShown } = plan
    tally[outcome.kind] += 1
    settler.settle(
      settlementOf(position, outcome, part, { outcomesShown, clientWaits, receivedMs, nowMs: nowMs() }),
      part,
    )
  }
  const cause = await session.postRecords(tasks, onOutcome, permission)
  await settler.flushed()
  if (cause === undefined) return { tally, denial: undefined }
  if (run.isNew === true) await journal.forget(batch, positions.length, lease)
  else {
    const settled = tasks.map((task) => deniedSettlement(context, run, task))
    await journal.settle(batch, settled, lease)
  }
  context.predecessors.settled(batch, positions)
  return { tally, denial: { cause, tasks } }
}

/**
 * The tasks of the records in their order. A record waits for the older ones of its key in other batches, and for the durable
 * outcome of the one before it in its own: if the process ended between the two, the mark of the second would hide that of the
 * first, and both would stay open.
 */
function toTasks(
  context: RunContext,
  { batch, plan, after, mayHaveLeft, isChecked }: Run,
  positions: readonly number[],
  claim: Claim,
  settler: Settler,
  { budgetMs, withdrawn }: Pick<WriteSession, 'budgetMs' | 'withdrawn'>,
): WriteTask[] {
  const tasks: WriteTask[] = []
  const readAll = isReadBackFirst(context)
  const gaveWay = withdrawn.then(() => false)
  // Records of one key share one list: only the oldest of them waits for it.
  const waits = new Map<readonly RecordRef[], Promise<boolean>>()
  const last = new Map<string, number>()
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
    last.set(key, position)
    if (before !== undefined) {
      const both = Promise.all([ready ?? true, settler.durable(before)])
      ready = both.then(([inTime, isDurable]) => inTime && isDurable)
    }
    tasks.push({
      position,
      record,
      key,
      first: readAll || mayHaveLeft(position) ? 'readBack' : isChecked === true ? 'check' : 'post',
      after: ready,
    })
  }
  return tasks
}

/** Marks records of a run as orphans: recovery finishes them. */
function leave({ orphans, clock }: RunContext, run: Run, positions: readonly number[]): void {
  if (positions.length === 0) return
  const after = new Map(positions.map((position) => [position, run.after.get(position) ?? []]))
  markOrphaned(orphans, run.batch, after, run.lease, clock.nowMs())
}

/** Nothing was applied: the client may repeat the batch with other credentials, or recovery retries with newer ones. */
function deniedSettlement(context: RunContext, run: Run, { position, first }: WriteTask): Settled {
  const reason = 'denied'
  const { plan, clientWaits, receivedMs, replyContext } = run
  if (clientWaits && first === 'post' && run.wasParked?.(position) !== true)
    return { position, state: 'refused', answer: undefined, reason, retry: 'resend' }
  const outcome = deniedOutcome(first)
  const planned = plan.records[position]
  if (planned === undefined) return { position, state: 'unknown', answer: undefined, reason }
  const part = toReplyPart(planned, outcome, replyContext)
  const { outcomesShown } = plan
  const followUp = { outcomesShown, clientWaits: false, receivedMs, nowMs: context.nowMs() }
  return { ...settlementOf(position, outcome, part, followUp), reason }
}
