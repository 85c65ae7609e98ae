/** So many calls may leave within any window. */
export interface PaceLimit {
  readonly calls: number
  readonly windowMs: number
}

/** The pace that all instances of a journal keep together. Errors: `ADP_JOURNAL_UNAVAILABLE`. */
export interface SharedPace {
  /** Gives out the next turns of a name and resolves with the time until each, in order. A turn is never given back. */
  reserve(name: string, limit: PaceLimit, calls: number): Promise<readonly number[]>
  /** Gives out no turn of a name for so long; never shortens an earlier hold. */
  hold(name: string, ms: number): Promise<void>
}
