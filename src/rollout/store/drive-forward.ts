import type { Clock } from '../../clock.ts'
import { AdapterError } from '../../errors.ts'
import type {
  Change,
  HeldByLost,
  PendingChange,
  RolloutSnapshot,
  RolloutStore,
  Undrained,
} from './rollout-store.ts'

/** How a forward change is driven. */
export interface DriveOptions {
  /** How long instances may take to let writes under way end. */
  readonly drainMs: number
  readonly clock: Clock
  /** Withdraws the change when it is aborted. */
  readonly signal?: AbortSignal
}

/** A forward change with what it asks for. */
export interface ForwardChange extends Change {
  /** As in `ProposedChange`. */
  readonly quietMs: number
  /** Set: the change waits so long for another operator's approval. */
  readonly approvalForMs?: number
}

/** The end of a forward change: made (`committed`), not made, or waiting for another operator (`needsApproval`). */
export type DriveResult =
  | { readonly kind: 'committed'; readonly revision: number }
  | { readonly kind: 'needsApproval'; readonly revision: number }
  /** Withdrawn: writes did not end in time on these instances. */
  | { readonly kind: 'undrained'; readonly instances: readonly Undrained[] }
  | HeldByLost
  | { readonly kind: 'early'; readonly untilMs: number; readonly nowMs: number }
  | { readonly kind: 'pending'; readonly pending: PendingChange }
  /** `gone`: dropped by another change, or expired; `own`: the operator who approves it has proposed it. */
  | { readonly kind: 'stale' | 'gone' | 'own' | 'interrupted' }

/** Between two looks at the acknowledgements. */
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
): Promise<DriveResult> {
  const needsApproval = approvalForMs !== undefined
  const forMs = approvalForMs ?? options.drainMs + SLACK_MS
  const proposed = await store.propose({ ...change, forMs, needsApproval })
  if (proposed.kind !== 'proposed') return proposed
  const { revision } = proposed
  if (needsApproval) return { kind: 'needsApproval', revision }
  return drain(store, { partner: change.partner, revision, by: change.by }, options)
}

/** Approves a change that waits for it, and goes on as `driveForward` does. */
export async function driveApproved(
  store: RolloutStore,
  approval: DrivenChange & { readonly reason: string },
  options: DriveOptions,
): Promise<DriveResult> {
  const { partner, revision, by, reason } = approval
  const approved = await store.approve(partner, revision, { by, reason, forMs: options.drainMs + SLACK_MS })
  if (approved.kind !== 'approved') return { kind: approved.kind }
  return drain(store, { partner, revision, by }, options)
}

/** A pending change, and who drives it. */
interface DrivenChange {
  readonly partner: string
  readonly revision: number
  readonly by: string
}

async function drain(store: RolloutStore, driven: DrivenChange, options: DriveOptions): Promise<DriveResult> {
  const { drainMs, clock, signal } = options
  const { partner, revision, by } = driven
  const endMs = clock.nowMs() + drainMs
  const end = async (result: DriveResult, reason: string): Promise<DriveResult> => {
    await store.withdraw(partner, revision, by, reason)
    return result
  }
  for (;;) {
    if (signal?.aborted === true) return end({ kind: 'interrupted' }, 'interrupted')
    const isLast = clock.nowMs() >= endMs
    const result = await takeStep(store, driven, isLast).catch((error: unknown) => {
      // Whether a commit was made is seen by the next look.
      if (isLast || !isUnavailable(error)) throw isUnavailable(error) ? notKnown(revision, error) : error
    })
    if (result?.kind === 'undrained') return end(result, describeUndrained(result.instances))
    if (result?.kind === 'lost') return end(result, 'an instance was lost meanwhile')
    if (result?.kind === 'early') return end(result, 'batches were relayed unrecorded meanwhile')
    if (result !== undefined) return result
    await pause(clock, signal)
  }
}

/** Looks whether all instances have drained, and commits then; the last time in any case, to learn who has not. Undefined: wait. */
async function takeStep(
  store: RolloutStore,
  { partner, revision }: DrivenChange,
  isLast: boolean,
): Promise<DriveResult | undefined> {
  const snapshot = await store.snapshot()
  const { state, pending } = snapshot.partners.get(partner) ?? {}
  if (state?.revision === revision) return { kind: 'committed', revision }
  if (pending?.revision !== revision) return { kind: 'gone' }
  if (!isLast && !isDrained(snapshot, partner, revision)) return undefined
  const result = await store.commit(partner, revision)
  if (result.kind === 'committed') return { kind: 'committed', revision }
  return result.kind === 'undrained' && !isLast ? undefined : result
}

function isDrained(
  { liveInstances, acknowledgements }: RolloutSnapshot,
  partner: string,
  revision: number,
): boolean {
  const drained = new Set(
    acknowledgements
      .filter((one) => one.partner === partner && one.pendingRevision === revision)
      .filter(({ writesV2, writesV3 }) => writesV2 + writesV3 === 0)
      .map(({ instance }) => instance),
  )
  return liveInstances.every((instance) => drained.has(instance))
}

function describeUndrained(instances: readonly Undrained[]): string {
  const texts = instances.map(({ instance, writes }) =>
    writes === undefined ? `instance ${instance} (no answer)` : `instance ${instance} (${writes} writes)`,
  )
  return `not drained in time: ${texts.join(', ')}`
}

const isUnavailable = (error: unknown): error is AdapterError =>
  error instanceof AdapterError && error.code === 'ADP_JOURNAL_UNAVAILABLE'

const notKnown = (revision: number, cause: AdapterError): AdapterError =>
  new AdapterError(
    'ADP_JOURNAL_UNAVAILABLE',
    `Whether change ${revision} was made is not known: ${cause.message} If it was not, it expires within ${SLACK_MS / 1000} s.`,
    { cause },
  )

function pause(clock: Clock, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      cancel()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const cancel = clock.after(EVERY_MS, done)
    signal?.addEventListener('abort', done)
  })
}
