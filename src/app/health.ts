import type { InstanceHealth } from '../console/ports.ts'
import type { Journal } from '../journal/index.ts'
import type { Readiness } from '../proxy/operations.ts'
import type { StoredStages } from '../rollout/live/stored-stages.ts'

/** Returns the health of this instance as the console shows it. `journal` is `undefined` before the start. */
export function healthOf(journal: Journal | undefined, stages: StoredStages | undefined): InstanceHealth {
  const failed = journal?.isDamaged() === true ? 'damaged' : 'unavailable'
  return {
    journal: journal?.isAvailable() === true ? 'available' : failed,
    stagesAgeMs: stages === undefined ? 0 : stages.viewAgeMs(),
  }
}

/** Returns the answer of `/readyz`. `isServing` is false before the start and once the instance stops. */
export function readinessOf(
  isServing: boolean,
  journal: Journal,
  stages: StoredStages | undefined,
): Readiness {
  if (!isServing) return 'stopping'
  const failed = journal.isDamaged() ? 'journal damaged' : 'journal unavailable'
  if (stages?.isReady() === false) return journal.isDamaged() ? failed : 'stages unknown'
  // Stays ready without the journal for partners at `legacy`, which do not need it. An instance that is not ready would get no requests.
  if (stages?.describe().some(({ stage }) => stage === 'legacy') === true) return 'ready'
  if (!journal.isAvailable()) return failed
  return journal.lease() === undefined ? 'journal lease lost' : 'ready'
}
