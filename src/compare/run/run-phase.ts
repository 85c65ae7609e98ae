import type { RecordDiff } from '../diff/index.ts'
import { createTally, type RecordGroups, type Tally } from '../tally.ts'
import type { TallyState } from '../tally-state.ts'
import type { PhaseState } from './checkpoint.ts'
import type { WindowFailure } from './compare-window.ts'
import type { WindowDone } from './run-comparison.ts'
import type { Window } from './windows.ts'

/** The windows of one kind of records: what was compared, and what failed. */
export interface RunPhase {
  /** Adds a window to the tally, or to those that failed. */
  take(done: WindowDone): void
  state(): PhaseState
  failures(): readonly WindowFailure[]
  /** Counts of the records that one side has in windows that failed; they are read again, so no checkpoint has them. */
  unknown(): readonly TallyState[]
}

/** Creates a phase at a state; records that are compared are added to `tally`. */
export function createRunPhase(
  tally: Tally,
  groupsOf: (row: RecordDiff) => RecordGroups,
  state: PhaseState,
): RunPhase {
  let { position, failed } = state
  const failures = new Map<string, { readonly failure: WindowFailure; readonly unknown: TallyState }>()
  const addAll = (to: Tally, rows: readonly RecordDiff[]): void => {
    for (const row of rows) to.add(row.comparison, groupsOf(row))
  }
  return {
    take: ({ window, results, next }) => {
      position = next ?? position
      failed = failed.filter((one) => nameOf(one) !== nameOf(window))
      failures.delete(nameOf(window))
      for (const { rows, noise, asked, failure } of results) {
        if (failure === undefined) {
          addAll(tally, rows)
          for (const comparison of noise.values()) tally.addNoise(comparison)
          tally.askAgain(asked)
        } else {
          const unknown = createTally()
          addAll(unknown, rows)
          failed = [...failed, failure.window]
          failures.set(nameOf(failure.window), { failure, unknown: unknown.state() })
        }
      }
    },
    state: () => ({ position, failed }),
    failures: () =>
      [...failures.values()]
        .map(({ failure }) => failure)
        .sort(({ window: one }, { window: other }) => one.list - other.list || one.fromMs - other.fromMs),
    unknown: () => [...failures.values()].map(({ unknown }) => unknown),
  }
}

function nameOf({ list, fromMs, toMs }: Window): string {
  return `${list} ${fromMs} ${toMs}`
}
