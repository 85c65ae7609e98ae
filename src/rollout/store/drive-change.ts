import { type Clock, waitFor } from '../../clock.ts'
import { AdapterError } from '../../errors.ts'
import { formatSetting, type StageSetting } from '../stage.ts'
import type { Change, ProposedChange, Undrained } from './changes.ts'
import type { RolloutSnapshot } from './read-snapshot.ts'
import type { RolloutStore } from './rollout-store.ts'

/** How a forward change is driven. */
export interface DriveOptions {
  readonly clock: Clock
  /** How long instances may take to let writes under way end. */
  readonly drainMs: number
  /** Withdraws the change when it is aborted. */
  readonly signal?: AbortSignal
  /** Called with the instances that the change waits for, each time that they were read. */
  readonly onWaiting?: (waiting: readonly WaitedFor[], snapshot: RolloutSnapshot) => void
}

/** A live instance that has not acknowledged a change (`writes` is undefined), or has writes under way that hold it up. */
export type WaitedFor = Pick<Undrained, 'instance' | 'writes'>

/** A forward change and its request; `approvalForMs`: how long it waits for another operator's approval, ms. */
type ForwardChange = Omit<ProposedChange, 'forMs' | 'needsApproval'> & { readonly approvalForMs?: number }

/**
 * The end of a forward change. `committed`: made; `needsApproval`: it waits for another operator; `undrained`: withdrawn, since writes did not
 * end in time on these instances; `gone`: dropped by another change, or expired; `own`: the operator who approves it has proposed it.
 */
export type DriveResult = Awaited<ReturnType<typeof driveForward | typeof driveApproved>>

/** The longest wait of an operator's step forward for the instances to drain. */
export const DRAIN_MS = 10_000
/** Between two reads of the acknowledgements. */
const EVERY_MS = 100
/** A change outlives its bound by so much, so that its last commit is not too late. */
const SLACK_MS = 2_000

/**
 * Proposes a forward change and commits it once all live instances have drained, or withdraws it when that takes too long. Errors: those of
 * the store; after `ADP_JOURNAL_UNAVAILABLE` the message says until when the change may still be made.
 */
export async function driveForward(
  store: RolloutStore,
  { approvalForMs, ...change }: ForwardChange,
  options: DriveOptions,
) {
  const needsApproval = approvalForMs !== undefined
  const forMs = approvalForMs ?? options.drainMs + SLACK_MS
  const proposed = await askAgain(
    store,
    `the change of ${change.partner} was proposed`,
    () => store.propose({ ...change, forMs, needsApproval }),
    ({ partners }) => {
      const pending = partners.get(change.partner)?.pending
      return isOwn(change, pending) ? { kind: 'proposed' as const, revision: pending.revision } : undefined
    },
  )
  if (proposed.kind !== 'proposed') return proposed
  const { revision } = proposed
  if (needsApproval) return { kind: 'needsApproval' as const, revision }
  return drain(store, { partner: change.partner, revision, by: change.by }, options)
}

/** Approves a change that waits for it, and goes on as `driveForward` does. */
export async function driveApproved(
  store: RolloutStore,
  { reason, ...driven }: DrivenChange & { readonly reason: string },
  options: DriveOptions,
) {
  const { partner, revision, by } = driven
  const forMs = options.drainMs + SLACK_MS
  const approved = await askAgain(
    store,
    `change ${revision} was approved`,
    () => store.approve(partner, revision, { by, reason, forMs }),
    ({ partners }) => {
      const { state, pending } = partners.get(partner) ?? {}
      const isApproved = pending?.revision === revision && !pending.needsApproval
      // The drive below finds what was committed meanwhile.
      return isApproved || state?.revision === revision ? { kind: 'approved' as const } : undefined
    },
  )
  if (approved.kind !== 'approved') return approved
  return drain(store, driven, options)
}

/** A pending change, and who drives it. */
interface DrivenChange {
  readonly partner: string
  readonly revision: number
  readonly by: string
}

async function drain(store: RolloutStore, driven: DrivenChange, options: DriveOptions) {
  const { drainMs, clock, signal = new AbortController().signal } = options
  const { partner, revision, by } = driven
  const endMs = clock.nowMs() + drainMs
  for (;;) {
    if (signal.aborted) {
      await store.withdraw(partner, revision, by, 'interrupted')
      return { kind: 'interrupted' as const }
    }
    const isLast = clock.nowMs() >= endMs
    const result = await takeStep(store, driven, isLast, options).catch((error: unknown) => {
      // Whether a commit was made is seen by the next read.
      if (isLast || !isUnavailable(error)) throw isUnavailable(error) ? notKnown(revision, error) : error
    })
    const reason = result && reasonToWithdraw(result)
    if (reason !== undefined) await store.withdraw(partner, revision, by, reason)
    if (result !== undefined) return result
    await waitFor(EVERY_MS, clock, signal)
  }
}

/** Reads whether all instances have drained, and commits then; the last time in any case, to learn who has not. Undefined: wait. */
async function takeStep(
  store: RolloutStore,
  { partner, revision }: DrivenChange,
  isLast: boolean,
  { onWaiting }: DriveOptions,
) {
  const snapshot = await store.snapshot()
  const { state, pending } = snapshot.partners.get(partner) ?? {}
  if (state?.revision === revision) return { kind: 'committed' as const, revision }
  if (pending?.revision !== revision) return { kind: 'gone' as const }
  const waiting = findWaiting(snapshot, partner, revision)
  onWaiting?.(waiting, snapshot)
  if (!isLast && waiting.length > 0) return undefined
  const result = await store.commit(partner, revision)
  if (result.kind === 'committed') return { kind: 'committed' as const, revision }
  return result.kind === 'undrained' && !isLast ? undefined : result
}

function findWaiting(
  { liveInstances, acknowledgements }: RolloutSnapshot,
  partner: string,
  revision: number,
): readonly WaitedFor[] {
  return liveInstances.flatMap((instance) => {
    const found = acknowledgements.find((one) => one.instance === instance && one.partner === partner)
    const writes = found?.pendingRevision === revision ? found.writesV2 + found.writesV3 : undefined
    return writes === 0 ? [] : [{ instance, writes }]
  })
}

/** For the audit trail; undefined: the change is over already. */
function reasonToWithdraw(result: NonNullable<Awaited<ReturnType<typeof takeStep>>>): string | undefined {
  if (result.kind === 'lost') return 'an instance was lost meanwhile'
  if (result.kind === 'early') return 'batches were relayed unrecorded meanwhile'
  if (result.kind !== 'undrained') return undefined
  const texts = result.instances.map(({ instance, writes }) =>
    writes === undefined
      ? `instance ${instance} (no answer)`
      : `instance ${instance} (${writes} ${writes === 1 ? 'write' : 'writes'})`,
  )
  return `not drained in time: ${texts.join(', ')}`
}

/** Changes a stage at once, as `apply` does. Errors: those of the store, and of `askAgain`. */
export function applyChange(
  store: Pick<RolloutStore, 'apply' | 'snapshot'>,
  change: Change,
  action: 'set' | 'back',
) {
  return askAgain(
    store,
    `the change of ${change.partner} was made`,
    () => store.apply(change, action),
    ({ partners }) => {
      const state = partners.get(change.partner)?.state
      return isOwn(change, state) ? { kind: 'applied' as const, revision: state.revision } : undefined
    },
  )
}

/**
 * Asks the store for something. Where the answer was lost, it may have been done: it is asked for again, which waits for the first request,
 * and `findDone` says by the stages whether a refusal of the second one means that the first one was carried out. Errors: those of the store;
 * after `ADP_JOURNAL_UNAVAILABLE` the message says that the outcome is not known.
 */
async function askAgain<Result extends { readonly kind: string }>(
  store: Pick<RolloutStore, 'snapshot'>,
  what: string,
  ask: () => Promise<Result>,
  findDone: (snapshot: RolloutSnapshot) => Result | undefined,
): Promise<Result> {
  try {
    return await ask()
  } catch (cause) {
    if (!isUnavailable(cause)) throw cause
  }
  try {
    const second = await ask()
    return findDone(await store.snapshot()) ?? second
  } catch (cause) {
    if (!isUnavailable(cause)) throw cause
    throw new AdapterError(cause.code, `Whether ${what} is not known: ${cause.message}`, { cause })
  }
}

function isOwn<Kept extends StageSetting & Pick<Change, 'by' | 'reason'>>(
  change: Change,
  kept: Kept | undefined,
): kept is Kept {
  return (
    kept?.by === change.by &&
    kept.reason === change.reason &&
    formatSetting(kept) === formatSetting(change.to)
  )
}

const isUnavailable = (error: unknown): error is AdapterError =>
  error instanceof AdapterError && error.code === 'ADP_JOURNAL_UNAVAILABLE'

const notKnown = (revision: number, cause: AdapterError): AdapterError =>
  new AdapterError(
    'ADP_JOURNAL_UNAVAILABLE',
    `Whether change ${revision} was made is not known: ${cause.message} If it was not, it expires within ${SLACK_MS / 1000} s.`,
    { cause },
  )
