import { AdapterError } from '../errors.ts'
import type { Predecessors, Settled } from '../journal/index.ts'
import type { BatchTally } from '../observability/events.ts'
import type { PartReply } from '../v2/index.ts'
import type { PostOutcome, UpstreamError } from '../v3/index.ts'
import type { WriteContext } from './context.ts'
import type { Partner } from '../partners/partner.ts'
import type { Claim } from './active-records.ts'
import { markOrphaned } from './orphans.ts'
import type { PlannedRecord } from './plan.ts'
import type { Reply } from './reply.ts'
import type { OnOutcome, Permission, WriteTask } from './post-records.ts'
import type { WriteSession } from './write-session.ts'
import { toReplyPart, type ReplyContext } from './reply-part.ts'
import { waitForDurablePredecessor } from './tasks.ts'
import { type FollowUp, settlementOf } from './settlement-policy.ts'

/** The records of one batch that are sent now. */
export interface Run {
  /** The batch's number in the journal. */
  readonly batch: number
  /** The lease under which its records were opened. */
  readonly lease: number
  readonly records: readonly PlannedRecord[]
  readonly tasks: readonly WriteTask[]
  /** The older records that those of the tasks wait for. */
  readonly after: Predecessors
  readonly replyContext: ReplyContext
  readonly followUp: Omit<FollowUp, 'nowMs'>
}

/** A run of more records is claimed in one turn of the event loop and begun in the next. */
const MANY = 1_000

/** Told of each record once it is settled for good, with its part of the reply. */
export type OnSettled = (position: number, reply: PartReply) => void

/** How a run ended: what became of its records, and why nothing was taken where the credentials were denied for all of them. */
export interface RunEnd {
  readonly tally: BatchTally
  readonly denial: UpstreamError | AdapterError | undefined
}

/** What a run uses of the context. */
export type RunContext = Pick<
  WriteContext,
  'journal' | 'predecessors' | 'active' | 'orphans' | 'clock' | 'nowMs' | 'slicing'
>

/**
 * Sends the records of a run and makes each outcome durable before anybody is told. Outcomes that come in the same moment
 * share one write to the journal. Errors: `ADP_OUTCOME_UNKNOWN` when an outcome could not be kept: records stay open then, and
 * the background finishes them; `ADP_JOURNAL_LOST` when another instance does.
 */
export async function runWrites(
  context: RunContext,
  session: Pick<WriteSession, 'postRecords'>,
  run: Run,
  onSettled: OnSettled,
): Promise<RunEnd> {
  const claim = context.active.claim(
    run.batch,
    run.tasks.map(({ position }) => position),
    run.records.length,
    run.lease,
  )
  const own = claim.all ? run.tasks : run.tasks.filter(({ position }) => claim.has(position))
  // Another run of this process has them: the background looks at them when it has ended.
  if (!claim.all)
    leave(
      context,
      run,
      run.tasks.filter(({ position }) => !claim.has(position)),
    )
  try {
    if (own.length > MANY) await context.slicing.open().next()
    return await sendAndSettle(context, session, { ...run, tasks: own }, claim, onSettled)
  } catch (cause) {
    // Where this instance has the batch all the same, the background finds it.
    if (cause instanceof AdapterError && cause.code === 'ADP_JOURNAL_LOST') throw cause
    // As long as this instance lives, nobody else takes them over.
    leave(context, run, own)
    throw new AdapterError(
      'ADP_OUTCOME_UNKNOWN',
      'The records were sent, and what became of them could not be kept. Send the same batch again for its answer.',
      { cause },
    )
  } finally {
    claim.end()
  }
}

/** Leaves tasks of a run to the background. */
function leave({ orphans, clock }: RunContext, run: Run, tasks: readonly WriteTask[]): void {
  if (tasks.length === 0) return
  const after = new Map(tasks.map(({ position }) => [position, run.after.get(position) ?? []]))
  markOrphaned(orphans, run.batch, after, run.lease, clock.nowMs())
}

async function sendAndSettle(
  context: RunContext,
  session: Pick<WriteSession, 'postRecords'>,
  run: Run,
  claim: Claim,
  onSettled: OnSettled,
): Promise<RunEnd> {
  const { journal } = context
  const tally: BatchTally = { accepted: 0, refused: 0, notApplied: 0, unknown: 0 }
  const ledger = createSettler(context, run, claim, onSettled)
  const unlessLost = (task: WriteTask): WriteTask =>
    task.after === undefined ? task : { ...task, after: Promise.race([task.after, claim.lost()]) }
  const tasks = waitForDurablePredecessor(run.tasks.map(unlessLost), (position) => ledger.kept(position))
  const permission: Permission = {
    // What cannot be kept is for the background.
    maySend: () => journal.lease() === run.lease && !ledger.hasFailed(),
    renew: async () => {
      const held = ledger.hasFailed() ? 0 : (journal.lease() ?? (await journal.renewLease()))
      return held === run.lease
    },
  }
  const onOutcome: OnOutcome = (position, outcome) => {
    const planned = run.records[position]
    if (planned === undefined) return
    const reply = toReplyPart(planned, outcome, run.replyContext)
    tally[outcome.kind] += 1
    ledger.settle(settlementOf(position, outcome, reply, { ...run.followUp, nowMs: context.nowMs() }), reply)
  }
  const denial = await session.postRecords(tasks, onOutcome, permission)
  await ledger.flushed()
  if (denial !== undefined) {
    await journal.settle(run.batch, run.tasks.map(deniedTask(context, run)), run.lease)
    context.predecessors.settled(
      run.batch,
      run.tasks.map(({ position }) => position),
    )
  }
  return { tally, denial }
}

/** What became of a request's records, for whoever observes. `replayed`: it had come before. */
export interface Answered {
  readonly tally: BatchTally
  readonly queuedMs: number
  readonly replayed: boolean
  /** Its number in the journal. */
  readonly batch: number
}

/**
 * Sends the records of a run and hands their parts to a reply. Errors: `ADP_TOKEN` or `ADP_FORBIDDEN` when the upstream denied
 * the credentials before it took anything, the token endpoint's when it has no other token, both only as long as the reply may
 * still be another; and those of `runWrites`.
 */
export async function runForClient(
  context: WriteContext,
  partner: Partner,
  session: WriteSession,
  reply: Reply,
  run: Run,
): Promise<BatchTally> {
  const { tally, denial } = await runWrites(context, session, run, (position, part) => {
    reply.settle(position, part)
    reply.begin()
  })
  if (denial === undefined) return tally
  const isOwn = denial instanceof AdapterError
  if (!isOwn) context.events.credentialsDenied({ status: denial.status, partner: partner.id })
  if (!reply.hasLeft()) throw isOwn ? denial : toDenialError(denial)
  // Others sent the same batch, and this client has read their answers.
  for (const task of run.tasks) {
    const planned = run.records[task.position]
    if (planned === undefined) continue
    const outcome = deniedOutcome(task)
    tally[outcome.kind] += 1
    reply.settle(task.position, toReplyPart(planned, outcome, run.replyContext))
  }
  return tally
}

/** What a client is told whose credentials the service denied before it took anything. */
export function toDenialError(denial: UpstreamError): AdapterError {
  const told = denial.entries[0]?.message ?? ''
  const message = told === '' ? `The service denied the credentials (${denial.status}).` : told
  return new AdapterError(denial.status === 401 ? 'ADP_TOKEN' : 'ADP_FORBIDDEN', message)
}

/** Nothing was applied: the client may come again with other credentials, or the background with newer ones. */
function deniedTask(context: RunContext, run: Run): (task: WriteTask) => Settled {
  const reason = 'denied'
  return (task) => {
    const { position, first } = task
    if (run.followUp.clientWaits && first === 'post')
      return { position, state: 'refused', answer: undefined, reason, retry: 'resend' }
    const outcome = deniedOutcome(task)
    const planned = run.records[position]
    if (planned === undefined) return { position, state: 'unknown', answer: undefined, reason }
    const reply = toReplyPart(planned, outcome, run.replyContext)
    const followUp = { ...run.followUp, nowMs: context.nowMs(), clientWaits: false }
    return { ...settlementOf(position, outcome, reply, followUp), reason }
  }
}

/** What may have been applied before is unknown still. */
function deniedOutcome({ first }: WriteTask): Extract<PostOutcome, { kind: 'unknown' | 'notApplied' }> {
  return first === 'readBack'
    ? { kind: 'unknown', reason: 'connectionLost' }
    : { kind: 'notApplied', reason: 'stopped', retryAfterMs: undefined }
}

interface Settler {
  settle(settled: Settled, reply: PartReply): void
  /** Resolves true when the outcome of this record is durable, false when it cannot become so. To be asked before it is settled. */
  kept(position: number): Promise<boolean>
  /** True once an outcome could not become durable: none will any longer. */
  hasFailed(): boolean
  /** Resolves when everything settled is durable and told; rejects when it cannot become so. */
  flushed(): Promise<void>
}

function createSettler(
  context: RunContext,
  { batch, lease }: Run,
  claim: Claim,
  onSettled: OnSettled,
): Settler {
  let outcomes: Settled[] = []
  let replies: PartReply[] = []
  let flushing: Promise<void> | undefined
  let failed = false
  const waiting = new Map<number, (isKept: boolean) => void>()
  const release = (positions: Iterable<number>, isKept: boolean): void => {
    for (const position of positions) waiting.get(position)?.(isKept)
  }
  const flush = async (): Promise<void> => {
    // The outcomes that undici reads from its sockets in one turn of the loop go together.
    await new Promise((resolve) => setImmediate(resolve))
    while (outcomes.length > 0) {
      const [group, told] = [outcomes, replies]
      outcomes = []
      replies = []
      await context.journal.settle(batch, group, lease)
      const positions = group.map(({ position }) => position)
      claim.release(positions)
      told.forEach((reply, index) => {
        onSettled(group[index]?.position ?? -1, reply)
      })
      context.predecessors.settled(batch, positions)
      release(positions, true)
    }
    flushing = undefined
  }
  return {
    settle: (settled, reply) => {
      outcomes.push(settled)
      replies.push(reply)
      if (flushing !== undefined) return
      flushing = flush()
      // Whoever waits in `flushed` hears of it too.
      flushing.catch(() => {
        failed = true
        release(waiting.keys(), false)
      })
    },
    kept: (position) =>
      new Promise((resolve) => {
        waiting.set(position, resolve)
      }),
    hasFailed: () => failed,
    flushed: async () => {
      while (flushing !== undefined) await flushing
    },
  }
}
