import type { PaceLimit } from './pace.ts'

/** Turns that are given out, and what has to be remembered of them. */
export interface NextTurns {
  readonly given: readonly number[]
  /** The latest turns, oldest first: as many as a window holds. */
  readonly kept: readonly number[]
}

/**
 * The next turns: none before `fromMs`, none before an earlier one, and each at least a window after the one that is `calls`
 * turns older. So no window ever holds more turns than `calls`.
 */
export function nextTurns(
  turns: readonly number[],
  { calls, windowMs }: PaceLimit,
  count: number,
  fromMs: number,
): NextTurns {
  const all = [...turns]
  for (let given = 0; given < count; given += 1) {
    const before = all[all.length - calls] ?? -Infinity
    all.push(Math.ceil(Math.max(fromMs, all.at(-1) ?? -Infinity, before + windowMs)))
  }
  return { given: all.slice(all.length - count), kept: all.slice(-calls) }
}
