import { AdapterError } from '../../errors.ts'
import type { ApplyResult, Change, RolloutStore } from './rollout-store.ts'
import { formatSetting } from './stage-row.ts'

/**
 * Changes a stage at once, as `apply` does. Where the answer was lost, the change may have been made: it is asked for again, which waits for
 * the first one, and then the store says which of the two it was. Errors: those of the store; after `ADP_JOURNAL_UNAVAILABLE` the message
 * says that the outcome is not known.
 */
export async function applyChange(
  store: Pick<RolloutStore, 'apply' | 'snapshot'>,
  change: Change,
  action: 'set' | 'back',
): Promise<ApplyResult> {
  try {
    return await store.apply(change, action)
  } catch (cause) {
    if (!isUnavailable(cause)) throw cause
  }
  try {
    const second = await store.apply(change, action)
    if (second.kind !== 'stale') return second
    const state = (await store.snapshot()).partners.get(change.partner)?.state
    const isOwn =
      state !== undefined &&
      state.by === change.by &&
      state.reason === change.reason &&
      formatSetting(state) === formatSetting(change.to)
    return isOwn ? { kind: 'applied', revision: state.revision } : second
  } catch (cause) {
    if (!isUnavailable(cause)) throw cause
    const message = `Whether the change of ${change.partner} was made is not known: ${cause.message}`
    throw new AdapterError(cause.code, message, { cause })
  }
}

const isUnavailable = (error: unknown): error is AdapterError =>
  error instanceof AdapterError && error.code === 'ADP_JOURNAL_UNAVAILABLE'
