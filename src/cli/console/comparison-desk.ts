import { latestRuns, toTrend } from '../../compare/evidence/read-evidence.ts'
import { openRuns } from '../../compare/run/index.ts'
import type { ComparisonDesk } from '../../console/ports.ts'
import type { OpenedRolloutStore } from '../../rollout/store/rollout-store.ts'

/** Of a run with some 5,000 classes of difference, which takes 0.1 s to read in the process that serves clients; a usual one has 20 KiB. */
const MAX_BYTES = 524_288

/** Creates what the console shows of comparisons: the runs of a folder, and what live comparison keeps in the journal. */
export function createComparisonDesk(
  folder: string,
  openStore: () => Promise<Pick<OpenedRolloutStore, 'evidence'>>,
): ComparisonDesk {
  const runs = openRuns(folder, MAX_BYTES)
  return {
    runs: () => runs.list(),
    unfinished: () => runs.listUnfinished(),
    run: (id) => runs.read(id),
    live: async (wanted) => {
      const counted = await (await openStore()).evidence.counts(wanted)
      const found = latestRuns(counted).map((document) => {
        const partner = document.partner ?? ''
        return {
          ...{ partner, document },
          trend: toTrend(counted.filter(({ scope }) => scope.partner === partner)),
        }
      })
      return found.sort((one, other) => (one.partner < other.partner ? -1 : 1))
    },
  }
}
