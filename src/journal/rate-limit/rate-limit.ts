/** At most `calls` calls may be sent within any window of `windowMs`. */
export interface RateLimit {
  readonly calls: number
  readonly windowMs: number
}

/** A rate limit that all instances of a journal share. Errors: `ADP_JOURNAL_UNAVAILABLE`. */
export interface SharedRateLimit {
  /** Reserves the next slots of a name; resolves with the time until each in ms, in order. A slot is never given back. */
  reserve(name: string, limit: RateLimit, calls: number): Promise<readonly number[]>
  /** Reserves no slot of a name for `ms`; never shortens a longer pause. */
  pauseFor(name: string, ms: number): Promise<void>
  /** Time since the last pause of a name ended, ms: negative while it lasts, Infinity without one in the last hour. */
  sincePauseMs(name: string): Promise<number>
}
