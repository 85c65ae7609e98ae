import { AdapterError } from '../errors.ts'
import type { StageEntry } from '../rollout/index.ts'

/**
 * To be called right before a write is made durable for V3, or its first byte is sent to V2. Error `ADP_STAGE_UNKNOWN` where this instance
 * may have been taken for dead since the side of the request was decided.
 */
export function expectCurrent(entry: Pick<StageEntry, 'isCurrent'>): void {
  if (entry.isCurrent()) return
  throw new AdapterError(
    'ADP_STAGE_UNKNOWN',
    'Another instance may serve this client on the other side by now. Nothing was sent; send the request again.',
  )
}
