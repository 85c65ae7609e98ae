import type { Clock } from '../../clock.ts'
import { isLoopback } from '../../http/address.ts'
import type { Partner } from '../../partners/partner.ts'
import type { Side } from '../../rollout/stage.ts'
import { createRateLimit, type RateLimit, type RateSlots } from '../../upstream/index.ts'

/**
 * The reasons why a comparison may not send now. `silence`: the service answered 429 in the last five minutes. `pace`: the rate limit is
 * reached.
 */
export type PaceRefusal = 'silence' | 'pace'

/**
 * The rate limit for comparisons: a fifth of the calls of the partner, with a lower priority than the calls of its clients. After V2 or V3
 * has answered 429 to a comparison or a client, comparisons send that side no request for five minutes.
 */
export interface Pace {
  /**
   * Resolves with `undefined` once a request may be sent, or with a refusal after at most `timeMs` milliseconds. `clients` is the rate limit
   * for the calls of clients to the same side, or `undefined` if their calls have no limit.
   */
  acquire(
    partner: Partner,
    side: Side,
    timeMs: number,
    clients: ClientLimit | undefined,
  ): Promise<PaceRefusal | undefined>
  onThrottled(partner: Partner, side: Side): void
  silent(): readonly { readonly partner: string; readonly side: Side }[]
}

export type ClientLimit = Pick<RateLimit, 'acquire' | 'sincePauseMs'>

const SILENCE_MS = 300_000
/** The minimum interval at which a pause is written to the journal. The first write already informs the other instances. */
const NOTE_INTERVAL_MS = 1_000
/** The fraction of the partner's calls that comparisons may use. */
const SHARE = 1 / 5
/** The calls per second that the service allows one integrator (service-facts 9). */
const SERVICE_LIMIT = 5
/** The calls per second of comparisons if clients have no limit. */
const UNLIMITED_RATE = 50

interface PacedSide {
  readonly partner: string
  readonly side: Side
  readonly limit: RateLimit
  callsPerSecond: number
  silentUntilMs: number
  notedMs: number
}

/**
 * Creates the rate limit. With `slotsOf`, all instances share it through the journal, and nothing is sent while the journal is unreachable.
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
  const findRefusal = async (
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
      const before = await findRefusal(own, clients)
      if (before !== undefined) return before
      // The comparison queues under its own key, so that a waiting comparison takes no place in the queue from a client.
      const queueKey = { partner: partner.id, owner: `comparison of ${partner.id}`, isAccepted: () => true }
      for (const limit of [own.limit, clients]) {
        const leftMs = deadlineMs - clock.nowMs()
        const admission = await limit?.acquire('comparison', leftMs, queueKey, stopped)
        if (admission?.admitted === false) return 'pace'
      }
      return findRefusal(own, clients)
    },
    onThrottled: (partner, side) => {
      const own = sideOf(partner, side)
      const nowMs = clock.nowMs()
      own.silentUntilMs = nowMs + SILENCE_MS
      if (nowMs < own.notedMs + NOTE_INTERVAL_MS) return
      own.notedMs = nowMs
      own.limit.pauseFor(NOTE_INTERVAL_MS)
    },
    silent: () => [...sides.values()].filter(isSilent),
  }
}

/**
 * Returns the calls per second for one side. Without a configured limit, V2 gets a fifth of the service's limit. V3, and a V2 on loopback,
 * get `UNLIMITED_RATE`.
 */
function comparisonRate({ callsPerSecond, v2 }: Partner, side: Side): number {
  if (callsPerSecond !== undefined) return callsPerSecond * SHARE
  const isLimited = side === 'v2' && v2 !== undefined && !isLoopback(v2.hostname)
  return isLimited ? SERVICE_LIMIT * SHARE : UNLIMITED_RATE
}
