import { type Clock, waitFor } from '../../clock.ts'
import { isLoopback } from '../../http/address.ts'
import type { Partner } from '../../partners/partner.ts'
import type { Side } from '../../rollout/index.ts'
import type { CallLimit, QueueKey, RateLimit } from '../../upstream/index.ts'

/** Why a comparison gets no call: the side has answered 429, or none was free in time. */
export type PaceRefusal = 'silence' | 'pace'

/**
 * The calls of comparisons: a fifth of those of the partner, behind its clients', and none to a side for five minutes after it has answered 429, to a
 * comparison or to a client. A pause of comparisons is never one of clients.
 */
export interface Pace {
  /** Resolves when the next call may leave; with the reason where it may not within this time. `clients`: the rate limit of the partner's clients. */
  acquire(
    partner: Partner,
    side: Side,
    timeMs: number,
    clients: ClientLimit | undefined,
  ): Promise<PaceRefusal | undefined>
  /** A side has answered 429. */
  throttled(partner: Partner, side: Side): void
  /** The sides that are left alone. */
  silent(): readonly { readonly partner: string; readonly side: Side }[]
}

export type ClientLimit = Pick<RateLimit, 'acquire' | 'sincePauseMs'>

/** The rate of comparisons as the instances of one journal share it, by names. Rejects while the journal cannot be reached. */
export interface PaceStore {
  /** Reserves the next slots of a name; resolves with the time until each in ms, in order. */
  reserve(name: string, limit: CallLimit, calls: number): Promise<readonly number[]>
  /** Notes a pause of a name that begins now. */
  pauseFor(name: string, ms: number): Promise<void>
  /** Time since the last pause of a name ended, ms. */
  sincePauseMs(name: string): Promise<number>
}

const SILENCE_MS = 300_000
/** How old what is known of pauses of other instances may be; they learn of the first 429 in this time. */
const KNOWN_MS = 1_000
/** Between two tries to reach the journal. */
const RETRY_MS = 1_000
/** Comparisons make at most this share of the calls that the service allows the partner. */
const SHARE = 1 / 5
/** The rate that the service allows one integrator (service-facts 9). */
const SERVICE_LIMIT = 5
/** Calls of comparisons in a second where nothing limits those of clients. */
const UNLIMITED = 50

interface PacedSide {
  readonly partner: string
  readonly side: Side
  /** In the store. */
  readonly name: string
  nextMs: number
  silentUntilMs: number
  /** When a pause was noted last, and that of other instances was asked for. */
  notedMs: number
  known: { readonly pauseMs: number; readonly askedMs: number }
}

/** Creates the pace of one process; with `store` that of all instances together, and no call leaves while it cannot be reached. */
export function createPace(clock: Clock, stopped: AbortSignal, store?: PaceStore): Pace {
  const sides = new Map<string, PacedSide>()
  const sideOf = ({ id }: Partner, side: Side): PacedSide => {
    const name = `comparison ${id} ${side}`
    const never = { nextMs: -Infinity, silentUntilMs: -Infinity, notedMs: -Infinity }
    const known = { pauseMs: -Infinity, askedMs: -Infinity }
    const own = sides.get(name) ?? { partner: id, side, name, ...never, known }
    sides.set(name, own)
    return own
  }
  const isSilent = ({ silentUntilMs }: PacedSide): boolean => clock.nowMs() < silentUntilMs
  /** Asks until there is an answer; undefined: not in time. */
  const untilKnown = async <Answer>(
    ask: () => Promise<Answer | undefined>,
    leftMs: () => number,
  ): Promise<Answer | undefined> => {
    for (;;) {
      // The journal reports its own failure.
      const answer = await ask().catch(() => undefined)
      if (answer !== undefined || leftMs() < RETRY_MS || stopped.aborted) return answer
      await waitFor(RETRY_MS, clock, stopped)
    }
  }
  const sincePauseMs = async (own: PacedSide): Promise<number> => {
    const askedMs = clock.nowMs()
    if (store !== undefined && askedMs - own.known.askedMs >= KNOWN_MS)
      own.known = { pauseMs: askedMs - (await store.sincePauseMs(own.name)), askedMs }
    return clock.nowMs() - own.known.pauseMs
  }
  const findSilence = async (
    own: PacedSide,
    leftMs: () => number,
    clients: ClientLimit | undefined,
  ): Promise<PaceRefusal | undefined> => {
    if (isSilent(own)) return 'silence'
    const sinceMs = await untilKnown(() => sincePauseMs(own), leftMs)
    const clientsMs =
      clients === undefined ? Infinity : await untilKnown(() => clients.sincePauseMs(), leftMs)
    const leastMs = Math.min(sinceMs ?? Infinity, clientsMs ?? Infinity)
    own.silentUntilMs = Math.max(own.silentUntilMs, clock.nowMs() + SILENCE_MS - leastMs)
    if (isSilent(own)) return 'silence'
    return sinceMs === undefined || clientsMs === undefined ? 'pace' : undefined
  }
  const untilSlotMs = async (
    own: PacedSide,
    { callsPerSecond, isLimited }: ComparisonRate,
  ): Promise<number> => {
    const windowMs = 1_000 / callsPerSecond
    if (store !== undefined && isLimited)
      return (await store.reserve(own.name, { calls: 1, windowMs }, 1))[0] ?? 0
    const atMs = Math.max(clock.nowMs(), own.nextMs)
    own.nextMs = atMs + windowMs
    return atMs - clock.nowMs()
  }
  return {
    acquire: async (partner, side, timeMs, clients) => {
      const own = sideOf(partner, side)
      const deadlineMs = clock.nowMs() + timeMs
      const leftMs = (): number => deadlineMs - clock.nowMs()
      const before = await findSilence(own, leftMs, clients)
      if (before !== undefined) return before
      const waitMs = await untilKnown(() => untilSlotMs(own, comparisonRate(partner, side)), leftMs)
      if (waitMs === undefined || waitMs > leftMs()) return 'pace'
      if (waitMs > 0) await waitFor(waitMs, clock, stopped)
      if (stopped.aborted) return 'pace'
      if (clients !== undefined) {
        const queueKey = comparisonQueueKey(partner.id)
        const { admitted } = await clients.acquire('comparison', leftMs(), queueKey, stopped)
        if (!admitted) return 'pace'
      }
      // Another instance may have seen a 429 while this call waited.
      return findSilence(own, leftMs, clients)
    },
    throttled: (partner, side) => {
      const own = sideOf(partner, side)
      const nowMs = clock.nowMs()
      own.silentUntilMs = nowMs + SILENCE_MS
      if (store === undefined || nowMs < own.notedMs + KNOWN_MS) return
      own.notedMs = nowMs
      const note = (): Promise<true> => store.pauseFor(own.name, KNOWN_MS).then(() => true)
      void untilKnown(note, () => own.silentUntilMs - clock.nowMs())
    },
    silent: () => [...sides.values()].filter(isSilent),
  }
}

interface ComparisonRate {
  readonly callsPerSecond: number
  /** False where nothing limits the calls of clients either: each instance counts for itself. */
  readonly isLimited: boolean
}

/** V2 has no limit in the configuration: the service's, and none on a loopback address. */
function comparisonRate({ callsPerSecond, v2 }: Partner, side: Side): ComparisonRate {
  if (callsPerSecond !== undefined) return { callsPerSecond: callsPerSecond * SHARE, isLimited: true }
  const isLimited = side === 'v2' && v2 !== undefined && !isLoopback(v2.hostname)
  return { callsPerSecond: isLimited ? SERVICE_LIMIT * SHARE : UNLIMITED, isLimited }
}

/** A share of its own in the queue of clients: a call that waits takes no place of theirs. */
function comparisonQueueKey(partner: string): QueueKey {
  return { partner, owner: `comparison of ${partner}`, isAccepted: () => true }
}
