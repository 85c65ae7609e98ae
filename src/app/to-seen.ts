import { backgroundClock } from '../clock.ts'
import type { Events } from '../observability/events.ts'
import { createLiveSeen, type LiveSeen, noSeen } from '../rollout/seen/live-seen.ts'
import type { RolloutStore } from '../rollout/store/rollout-store.ts'

/** The notes of what is seen of partners, for the advice on their next step; without a store none are kept. */
export function toSeen(
  store: Pick<RolloutStore, 'updateEvidence'> | undefined,
  events: Pick<Events, 'seenNotKept'>,
): LiveSeen {
  if (store === undefined) return noSeen
  const onFailure = (partner: string, code: string): void => events.seenNotKept({ partner, code })
  return createLiveSeen({ store, clock: backgroundClock, onFailure })
}
