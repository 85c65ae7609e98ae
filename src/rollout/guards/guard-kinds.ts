/** One kind of bad outcome that guards watch. */
export interface GuardKind {
  /**
   * V3 counts as worse only above this ratio of odds against V2. Schools differ: the side with the schools that send more faulty marks would
   * show that as a small but lasting difference, and a test against the ratio 1 finds any lasting difference in the end.
   */
  readonly toleratedOdds: number
  /** The share of writes with this outcome that is tolerated where there is no V2 in the same window to compare with. */
  readonly toleratedShare: number
  /** Its part of the probability of a false alarm; all of them add up to 1 at most. */
  readonly alphaShare: number
  /** True: it is known of V3 alone, so there is never a V2 to compare with in the same window. */
  readonly oneSided: boolean
}

/** The kinds of bad outcomes. Another source of verdicts adds a row; evidence that is stored without it starts empty. */
export const guardKinds = {
  /** A record whose outcome is unknown. */
  unknown: { toleratedOdds: 2, toleratedShare: 0.02, alphaShare: 0.27, oneSided: false },
  /** A 5xx of the upstream, for the request or for a record. */
  serverError: { toleratedOdds: 2, toleratedShare: 0.02, alphaShare: 0.27, oneSided: false },
  /** A refused record: depends on what schools send, so they differ more. */
  refused: { toleratedOdds: 3, toleratedShare: 0.5, alphaShare: 0.18, oneSided: false },
  /** Latency without queueing above the threshold of the window. */
  slow: { toleratedOdds: 4, toleratedShare: 0.3, alphaShare: 0.18, oneSided: false },
  /** A request that V3 served and in which comparison found a record that V2 has otherwise. */
  mismatch: { toleratedOdds: 2, toleratedShare: 0.02, alphaShare: 0.1, oneSided: true },
} as const satisfies Record<string, GuardKind>

export type GuardKindName = keyof typeof guardKinds

/** The names of `guardKinds`, in the order in which an alarm is looked for. */
export const guardKindNames = Object.keys(guardKinds).filter(isGuardKind)

/** Whether a text names a kind. */
export function isGuardKind(name: string): name is GuardKindName {
  return Object.hasOwn(guardKinds, name)
}
