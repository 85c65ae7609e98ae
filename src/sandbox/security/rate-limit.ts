const windowMs = 1000

/**
 * Counts the calls of each subscription key in the second that ends now; the function returns the seconds to wait where a
 * call is one too many, which is then not counted. `nowMs` must not go back.
 */
export function createRateLimit(
  callsPerSecond: number | undefined,
  nowMs: () => number,
): (subscriptionKey: string) => number | undefined {
  if (callsPerSecond === undefined) return () => undefined
  const calls = new Map<string, number[]>()
  return (subscriptionKey) => {
    const now = nowMs()
    const recent = (calls.get(subscriptionKey) ?? []).filter((at) => at > now - windowMs)
    calls.set(subscriptionKey, recent)
    const oldest = recent[0]
    if (recent.length < callsPerSecond || oldest === undefined) {
      recent.push(now)
      return undefined
    }
    return Math.max(1, Math.ceil((oldest + windowMs - now) / 1000))
  }
}
