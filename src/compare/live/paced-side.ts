import type { Clock } from '../../clock.ts'
import { isLoopback } from '../../http/loopback.ts'
import type { Partner } from '../../partners/partner.ts'
import type { Side } from '../../rollout/index.ts'
import type { CallBudget, QueueKey, RateLimit } from '../../upstream/index.ts'
import { createRateLimit } from '../../upstream/rate-limit/rate-limit.ts'
import { UnsentError } from './skip-reason.ts'

/** How long a side is left alone after it has answered 429. */
export const SILENCE_MS = 300_000
/** Comparisons make at most this share of the calls that the service allows the partner. */
const SHARE = 1 / 5
/** The rate that the service allows one integrator (service-facts 9). */
const SERVICE_LIMIT = 5
/** Calls of comparisons in a second where nothing limits those of clients. */
const UNLIMITED = 50

/** Comparison calls to one side for one partner, one at a time. */
export interface PacedSide {
  /** Opens the budget of one comparison; `shared` is the rate limit of the partner's clients, which go first there. */
  open(timeMs: number, shared: RateLimit | undefined): CallBudget
  /** Runs calls after those that were begun before. */
  alone<Result>(call: () => Promise<Result>): Promise<Result>
  /** The side has answered 429, to a comparison or to a client: no comparison asks it for five minutes. */
  silence(): void
  isSilent(): boolean
}

/** The sides of all partners. */
export interface PacedSides {
  of(partner: Partner, side: Side): PacedSide
  /** The sides that are left alone now. */
  silent(): readonly { readonly partner: string; readonly side: Side }[]
}

interface KnownSide {
  readonly paced: PacedSide
  readonly limit: RateLimit
  rate: number
  readonly partner: string
  readonly side: Side
}

/** Creates the pace of comparisons: a fifth of the partner's calls, behind those of its clients, and never a pause for these. With `stopped` no call leaves. */
export function createPacedSides(clock: Clock, stopped: AbortSignal): PacedSides {
  const sides = new Map<string, KnownSide>()
  return {
    of: (partner, side) => {
      const rate = comparisonRate(partner, side)
      const known = sides.get(`${partner.id} ${side}`)
      if (known === undefined) {
        const limit = createRateLimit({ callsPerSecond: rate, clock })
        const paced = createPacedSide(limit, partner.id, clock, stopped)
        sides.set(`${partner.id} ${side}`, { paced, limit, rate, partner: partner.id, side })
        return paced
      }
      // A reload may change it.
      if (known.rate !== rate) known.limit.setRate(rate)
      known.rate = rate
      return known.paced
    },
    silent: () =>
      [...sides.values()]
        .filter(({ paced }) => paced.isSilent())
        .map(({ partner, side }) => ({ partner, side })),
  }
}

/** Calls per second. V2 has no limit in the configuration: the service's, and none on a loopback address. */
function comparisonRate({ callsPerSecond, v2 }: Partner, side: Side): number {
  if (callsPerSecond !== undefined) return callsPerSecond * SHARE
  const isLimited = side === 'v2' && v2 !== undefined && !isLoopback(v2.hostname)
  return isLimited ? SERVICE_LIMIT * SHARE : UNLIMITED
}

function createPacedSide(own: RateLimit, partner: string, clock: Clock, stopped: AbortSignal): PacedSide {
  // A share of its own in the queue of clients: a call that waits takes no place of theirs.
  const queueKey: QueueKey = { partner, owner: `comparison of ${partner}`, isAccepted: () => true }
  let silentUntilMs = -Infinity
  let last: Promise<unknown> = Promise.resolve()
  const silence = (sinceMs = clock.nowMs()): void => {
    silentUntilMs = Math.max(silentUntilMs, sinceMs + SILENCE_MS)
  }
  const isSilent = (): boolean => clock.nowMs() < silentUntilMs
  return {
    silence: () => silence(),
    isSilent,
    alone: (call) => {
      const result = last.then(call, call)
      last = result.catch(() => undefined)
      return result
    },
    open: (timeMs, shared) => {
      const deadlineMs = clock.nowMs() + timeMs
      const leftMs = (): number => deadlineMs - clock.nowMs()
      const acquire = async (limit: RateLimit): Promise<void> => {
        const { admitted } = await limit.acquire('comparison', limit.nowMs() + leftMs(), queueKey, stopped)
        if (!admitted) throw new UnsentError('pace')
      }
      return {
        take: async () => {
          // A client's 429 counts as well.
          if (shared !== undefined) silence(shared.lastPauseMs())
          if (isSilent()) throw new UnsentError('silence')
          await acquire(own)
          if (shared !== undefined) await acquire(shared)
          if (isSilent()) throw new UnsentError('silence')
        },
        pause: (_ms, wholeKey) => {
          // Clients find out about the service's limit by their own calls.
          if (wholeKey) silence()
          return Promise.resolve(false)
        },
        leftMs,
        queuedMs: () => 0,
      }
    },
  }
}
