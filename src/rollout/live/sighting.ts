import type { WallClock } from '../../clock.ts'

/** A moment by both clocks. */
export interface Sighting {
  readonly monotonicMs: number
  readonly wallMs: number
}

export function readClocks(clock: WallClock): Sighting {
  return { monotonicMs: clock.nowMs(), wallMs: clock.wallMs() }
}

/**
 * The time since a moment by the clock that says more: the monotonic clock stands while a machine is suspended, the wall clock can be set.
 * One that was set back counts as well, since it may hide a pause.
 */
export function elapsedMs(clock: WallClock, since: Sighting): number {
  return gapMs(since, readClocks(clock))
}

/** The time between two moments, by the same rule. */
export function gapMs(from: Sighting, to: Sighting): number {
  return Math.max(to.monotonicMs - from.monotonicMs, Math.abs(to.wallMs - from.wallMs))
}
