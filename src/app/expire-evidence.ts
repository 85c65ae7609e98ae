import { backgroundClock } from '../clock.ts'
import { createPeriodicTask, type PeriodicTask } from '../clock/periodic-task.ts'
import { AdapterError } from '../errors.ts'
import type { Events } from '../observability/events.ts'
import type { EvidenceStore } from '../rollout/index.ts'

const EVERY_MS = 3_600_000
/** Many a process does not live for an hour. */
const FIRST_MS = 5_000
const STOP_MS = 1_000

/** Destroys the keys of evidence whose time is over, once an hour: also where nothing is compared any more. */
export function createEvidenceExpiry(
  store: Pick<EvidenceStore, 'destroyExpired'>,
  events: Pick<Events, 'evidenceNotKept'>,
  clock: Pick<typeof backgroundClock, 'after'> = backgroundClock,
): PeriodicTask {
  let isFailing = false
  return createPeriodicTask({
    clock,
    everyMs: EVERY_MS,
    firstMs: FIRST_MS,
    stopMs: STOP_MS,
    act: async ({ isLast }) => {
      if (isLast) return
      try {
        await store.destroyExpired()
        isFailing = false
      } catch (cause) {
        const code = cause instanceof AdapterError ? cause.code : 'ADP_INTERNAL'
        if (!isFailing) events.evidenceNotKept({ partner: '', code })
        isFailing = true
      }
    },
  })
}
