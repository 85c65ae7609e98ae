import type { Clock } from './clock.ts'

/** So many calls may leave within any window. */
export interface TurnLimit {
  readonly calls: number
  readonly windowMs: number
}

/** When calls may leave; asking and taking are apart, since a turn is for whoever comes first then. */
export interface Turns {
  /** Time until the next call may leave; undefined: not known yet, and whoever asked is told when it is. */
  waitMs(wanted: number): number | undefined
  /** Uses the turn that has come. */
  take(): void
  /** Time until the last of so many calls could leave, if none left for `heldMs` and nobody else took a turn. */
  aheadMs(calls: number, heldMs: number): number
  isIdle(): boolean
}

/** Turns that several instances share, for one subscription key. */
export interface SharedTurns {
  /**
   * Reserves turns of all instances and gives the time until each, in order. Undefined: they cannot be reached, and each
   * instance keeps the limit on its own. Never rejects.
   */
  reserve(limit: TurnLimit, calls: number): Promise<readonly number[] | undefined>
  /** Holds the calls of all instances back for so long. */
  hold(ms: number): void
}

/** A window is this much longer than the upstream's, since calls do not all take the same time to get there. */
const JITTER_MS = 50

/** The limit that keeps any second to `callsPerSecond`; a fraction means one call in more than a second. */
export function toTurnLimit(callsPerSecond: number): TurnLimit {
  const calls = Math.max(1, Math.floor(callsPerSecond))
  return { calls, windowMs: (calls / callsPerSecond) * 1_000 + JITTER_MS }
}

/**
 * Turns of this instance: a bucket of tokens, each of which comes back one window after it was taken. So no second ever sees
 * more calls than allowed, also when the upstream counts a sliding window, and a small batch leaves at once.
 */
export function createLocalTurns({ calls: tokens, windowMs }: TurnLimit, clock: Clock): Turns {
  /** When each token may be taken again; `next` is the one that comes back first. */
  const backMs = new Array<number>(tokens).fill(-Infinity)
  let next = 0
  return {
    waitMs: () => Math.max(0, (backMs[next] ?? 0) - clock.nowMs()),
    take: () => {
      backMs[next] = clock.nowMs() + windowMs
      next = (next + 1) % tokens
    },
    aheadMs: (calls, heldMs) => {
      const rounds = Math.floor((calls - 1) / tokens)
      const first = backMs[(next + ((calls - 1) % tokens)) % tokens] ?? 0
      return Math.max(0, first - clock.nowMs(), heldMs) + rounds * windowMs
    },
    isIdle: () => Math.max(...backMs) <= clock.nowMs(),
  }
}

/** This share of a window's turns is reserved at a time: few questions, and no instance has to wait long for another. */
const SHARE = 4
/** The window of all instances together is longer by so much, since nobody knows how old an answer is that took so long. */
const ANSWER_MS = 100

/** A turn that was reserved. */
interface Reserved {
  readonly atMs: number
  /** Used later it could be one call too many. */
  readonly untilMs: number
}

/**
 * Turns that are reserved among all instances, a few at a time and only while somebody waits. A turn that nobody used in time
 * is lost. `onKnown` is called when a time that was asked for is known.
 */
export function createSharedTurns(
  own: TurnLimit,
  clock: Clock,
  shared: SharedTurns,
  onKnown: () => void,
): Turns {
  const local = createLocalTurns(own, clock)
  const limit = { calls: own.calls, windowMs: own.windowMs + ANSWER_MS }
  let reserved: Reserved[] = []
  let asking = false
  const ask = (wanted: number): void => {
    if (asking) return
    asking = true
    const askedMs = clock.nowMs()
    void shared.reserve(limit, Math.min(wanted, Math.ceil(limit.calls / SHARE))).then((waits) => {
      asking = false
      const nowMs = clock.nowMs()
      const slackMs = Math.max(JITTER_MS, JITTER_MS + ANSWER_MS - (nowMs - askedMs))
      for (const waitMs of waits ?? [local.waitMs(1) ?? 0])
        reserved.push({ atMs: nowMs + waitMs, untilMs: nowMs + waitMs + slackMs })
      onKnown()
    })
  }
  return {
    waitMs: (wanted) => {
      const nowMs = clock.nowMs()
      reserved = reserved.filter(({ untilMs }) => untilMs >= nowMs)
      const [first] = reserved
      if (first !== undefined) return Math.max(0, first.atMs - nowMs)
      ask(wanted)
      return undefined
    },
    take: () => {
      reserved.shift()
      local.take()
    },
    aheadMs: (calls, heldMs) => local.aheadMs(calls, heldMs),
    isIdle: () => !asking && local.isIdle(),
  }
}
