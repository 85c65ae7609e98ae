/** The clock of the service. It may be fixed, and can be set while the sandbox runs. */
export interface Clock {
  /** Milliseconds. */
  now(): number
  /** Stops the clock at an instant; undefined lets it follow the machine's clock again. */
  fix(ms: number | undefined): void
}

/** Creates a clock that is fixed at `fixedMs`, or runs. */
export function createClock(fixedMs?: number): Clock {
  let fixed = fixedMs
  return {
    now: () => fixed ?? Date.now(),
    fix: (ms) => {
      fixed = ms
    },
  }
}
