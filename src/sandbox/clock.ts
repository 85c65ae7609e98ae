/** The time of the service. It may stand still, and be set while the sandbox runs. */
export interface Clock {
  /** Milliseconds. */
  now(): number
  /** Stops the clock at an instant; undefined lets it follow the machine's clock again. */
  fix(ms: number | undefined): void
}

/** Creates a clock that stands at `fixedMs`, or runs. */
export function createClock(fixedMs?: number): Clock {
  let fixed = fixedMs
  return {
    now: () => fixed ?? Date.now(),
    fix: (ms) => {
      fixed = ms
    },
  }
}
