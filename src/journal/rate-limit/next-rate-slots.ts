import type { RateLimit } from './rate-limit.ts'

/** Slots that are reserved now, and those that later reservations depend on. */
export interface NextRateSlots {
  readonly reserved: readonly number[]
  /** The latest slots, oldest first: as many as a window holds. */
  readonly kept: readonly number[]
}

/**
 * The next slots: none before `fromMs`, none before an earlier one, and each at least a window after the one that is `calls`
 * slots older. No window ever holds more than `calls` slots.
 */
export function nextRateSlots(
  slots: readonly number[],
  { calls, windowMs }: RateLimit,
  count: number,
  fromMs: number,
): NextRateSlots {
  const all = [...slots]
  for (let reserved = 0; reserved < count; reserved += 1) {
    const before = all[all.length - calls] ?? -Infinity
    all.push(Math.ceil(Math.max(fromMs, all.at(-1) ?? -Infinity, before + windowMs)))
  }
  return { reserved: all.slice(all.length - count), kept: all.slice(-calls) }
}
