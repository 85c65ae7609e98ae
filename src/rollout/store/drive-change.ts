import { type Clock, waitFor } from '../../clock.ts'
import { AdapterError } from '../../errors.ts'
import { formatSetting, type StageSetting } from '../stage.ts'
import type { Change, ProposedChange, Undrained } from './changes.ts'
import type { RolloutSnapshot } from './read-snapshot.ts'
import type { RolloutStore } from './rollout-store.ts'

export interface DriveOptions {
  readonly clock: Clock
  /** How long the instances may take to finish their writes, in milliseconds. */
  readonly drainMs: number
  /** The change is withdrawn when this signal aborts. */
  readonly signal?: AbortSignal
  /** Called after each read of the stages, with the instances for which the change waits. */
  readonly onWaiting?: (waiting: readonly WaitedFor[], snapshot: RolloutSnapshot) => void
}

/** An instance for which a change waits. `writes` is `undefined` if the instance has not acknowledged the change. */
export type WaitedFor = Pick<Undrained, 'instance' | 'writes'>

/** A step forward. `approvalForMs` is how long the change waits for another operator's approval, or is absent if the change needs no approval. */
type ForwardChange = Omit<ProposedChange, 'forMs' | 'needsApproval'> & { readonly approvalForMs?: number }

/**
 * The result of a step forward. `committed`: the change was made. `needsApproval`: the change waits for another operator. `undrained`: the
 * change was withdrawn, because writes on the listed instances did not end in time. `gone`: another change replaced the change, or the
 * change expired. `own`: the operator who approves the change also proposed it.
 */
export type DriveResult = Awaited<ReturnType<typeof driveForward | typeof driveApproved>>

/** How long a step forward waits for the instances to drain, in milliseconds. */
export const DRAIN_MS = 10_000
const EVERY_MS = 100
/** How long a change stays valid after its drain time, in milliseconds, so that the last attempt to commit it is not too late. */
const SLACK_MS = 2_000

/**
 * Proposes a forward change and commits it once all live instances have drained. Withdraws the change if draining takes too long. Throws
 * the errors of the store. The message of `ADP_JOURNAL_UNAVAILABLE` says until when the change may still be made.
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

/** Approves a pending change, and commits it as `driveForward` does. */
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
      // Counts a committed change as approved too. `drain` then finds out that the change was committed.
      return isApproved || state?.revision === revision ? { kind: 'approved' as const } : undefined
    },
  )
  if (approved.kind !== 'approved') return approved
  return drain(store, driven, options)
}

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
      // Ignores a lost response, because the next read of the stages shows whether the commit was made.
      if (isLast || !isUnavailable(error)) throw isUnavailable(error) ? notKnown(revision, error) : error
    })
    const reason = result && reasonToWithdraw(result)
    if (reason !== undefined) await store.withdraw(partner, revision, by, reason)
    if (result !== undefined) return result
    await waitFor(EVERY_MS, clock, signal)
  }
}

/**
 * Commits the change if all instances have drained. The last attempt calls `store.commit` even if instances have not drained: the store
 * then refuses the commit, and its result lists these instances. Returns `undefined` if the change must wait.
 */
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

/** Returns the reason for withdrawing a change, or `undefined` if the change is already over. */
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

/** Changes a stage immediately (`RolloutStore.apply`). Throws the errors of the store and of `askAgain`. */
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
 * Sends a request to the store, and repeats it once if the response was lost. The store runs the repeated request after the first.
 * `findDone` then finds out from the stages whether one of the two requests was carried out. The message of `ADP_JOURNAL_UNAVAILABLE` says
 * that the outcome is unknown.
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
    throw new AdapterError(
      cause.code,
      `It is not known whether ${what}. ${cause.message} Check the stage with markbridge rollout show.`,
      { cause },
    )
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
    `It is not known whether change ${revision} was made. ${cause.message} If the change was not made, it expires within ${SLACK_MS / 1000} s. Check the stage with markbridge rollout show.`,
    { cause },
  )
