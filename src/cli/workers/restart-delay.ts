/** A worker that lived longer did not end for the reason that ended those before it. */
const LONG_LIFE_MS = 60_000
const FIRST_MS = 100
const LONGEST_MS = 10_000

/**
 * Creates the delays after which workers are replaced: 100 ms, doubled after each short life, up to 10 s. `livedMs` is the age of
 * the worker that ended.
 */
export function createRestartDelay(): (livedMs: number) => number {
  let young = 0
  return (livedMs) => {
    if (livedMs >= LONG_LIFE_MS) young = 0
    const delayMs = Math.min(FIRST_MS * 2 ** young, LONGEST_MS)
    young += 1
    return delayMs
  }
}
