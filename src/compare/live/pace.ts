import type { Clock } from '../../clock.ts'
import { isLoopback } from '../../http/address.ts'
import type { Partner } from '../../partners/partner.ts'
import type { Side } from '../../rollout/stage.ts'
import { createRateLimit, type RateLimit, type RateSlots } from '../../upstream/index.ts'

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

const SILENCE_MS = 300_000
/** A pause is noted in the journal at most this often: the other instances learn of the first 429 in this time. */
const NOTED_MS = 1_000
/** Comparisons make at most this share of the calls that the service allows the partner. */
const SHARE = 1 / 5
/** The rate that the service allows one integrator (service-facts 9). */
const SERVICE_LIMIT = 5
/** Calls of comparisons in a second where nothing limits those of clients. */
const UNLIMITED = 50

interface PacedSide {
  readonly partner: string
  readonly side: Side
  readonly limit: RateLimit
  callsPerSecond: number
  silentUntilMs: number
  notedMs: number
}

/**
 * Creates the pace of one process; with `slotsOf` that of all instances of a journal together, by names: nothing is compared while it cannot be
 * reached.
 */
export function createPace(clock: Clock, stopped: AbortSignal, slotsOf?: (name: string) => RateSlots): Pace {
  const sides = new Map<string, PacedSide>()
  const sideOf = (partner: Partner, side: Side): PacedSide => {
    const name = `comparison ${partner.id} ${side}`
    const callsPerSecond = comparisonRate(partner, side)
    const own = sides.get(name) ?? {
      ...{ partner: partner.id, side, callsPerSecond, silentUntilMs: -Infinity, notedMs: -Infinity },
      limit: createRateLimit({ callsPerSecond, clock, slots: slotsOf?.(name) }),
    }
    if (own.callsPerSecond !== callsPerSecond) own.limit.setRate(callsPerSecond)
    own.callsPerSecond = callsPerSecond
    sides.set(name, own)
    return own
  }
  const isSilent = ({ silentUntilMs }: PacedSide): boolean => clock.nowMs() < silentUntilMs
  const findSilence = async (
    own: PacedSide,
    clients: ClientLimit | undefined,
  ): Promise<PaceRefusal | undefined> => {
    if (isSilent(own)) return 'silence'
    const [sinceMs, clientsMs] = await Promise.all([
      own.limit.sincePauseMs(),
      clients === undefined ? Infinity : clients.sincePauseMs(),
    ])
    const leastMs = Math.min(sinceMs ?? Infinity, clientsMs ?? Infinity)
    own.silentUntilMs = Math.max(own.silentUntilMs, clock.nowMs() + SILENCE_MS - leastMs)
    if (isSilent(own)) return 'silence'
    return sinceMs === undefined || clientsMs === undefined ? 'pace' : undefined
  }
  return {
    acquire: async (partner, side, timeMs, clients) => {
      const own = sideOf(partner, side)
      const deadlineMs = clock.nowMs() + timeMs
      const before = await findSilence(own, clients)
      if (before !== undefined) return before
      // A share of its own in the queue of clients: a call that waits takes no place of theirs.
      const queueKey = { partner: partner.id, owner: `comparison of ${partner.id}`, isAccepted: () => true }
      for (const limit of [own.limit, clients]) {
        const leftMs = deadlineMs - clock.nowMs()
        const admission = await limit?.acquire('comparison', leftMs, queueKey, stopped)
        if (admission?.admitted === false) return 'pace'
      }
      // Another instance may have seen a 429 while this call waited.
      return findSilence(own, clients)
    },
    throttled: (partner, side) => {
      const own = sideOf(partner, side)
      const nowMs = clock.nowMs()
      own.silentUntilMs = nowMs + SILENCE_MS
      if (nowMs < own.notedMs + NOTED_MS) return
      own.notedMs = nowMs
      own.limit.pauseFor(NOTED_MS)
    },
    silent: () => [...sides.values()].filter(isSilent),
  }
}

/** Calls in a second. V2 has no limit in the configuration: the service's, and none on a loopback address. */
function comparisonRate({ callsPerSecond, v2 }: Partner, side: Side): number {
  if (callsPerSecond !== undefined) return callsPerSecond * SHARE
  const isLimited = side === 'v2' && v2 !== undefined && !isLoopback(v2.hostname)
  return isLimited ? SERVICE_LIMIT * SHARE : UNLIMITED
}
