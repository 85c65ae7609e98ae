/** Times of two services differ in precision, and their clocks a little. */
const SLACK_MS = 1_000

/**
 * True for a mark that V3 shows with a later `RecordedOn` than the one it is set against: it was written since. A time in the future is no
 * write, but a difference.
 */
export function isLater(seen: unknown, own: unknown, nowMs: number): boolean {
  const [seenMs, ownMs] = [recordedMs(seen), recordedMs(own)]
  return seenMs > ownMs + SLACK_MS && seenMs <= nowMs + SLACK_MS
}

/** NaN where there is none: nothing is later then. */
function recordedMs(mark: unknown): number {
  const value =
    typeof mark === 'object' && mark !== null
      ? (mark as Readonly<Record<string, unknown>>)['RecordedOn']
      : undefined
  return typeof value === 'string' ? Date.parse(value) : NaN
}
