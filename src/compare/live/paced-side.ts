import type { Clock } from '../../clock.ts'
import { isLoopback } from '../../http/loopback.ts'
import type { Partner } from '../../partners/partner.ts'
import type { Side } from '../../rollout/index.ts'
import { type CallBudget, createRateLimit, type QueueKey, type RateLimit } from '../../upstream/index.ts'
import { waitFor } from '../../clock/wait-for.ts'
import { createSharedPace, type PaceStore, RETRY_MS } from './shared-pace.ts'
import { UnsentError } from './skip-reason.ts'

/** How long a side is left alone after it has answered 429. */
export const SILENCE_MS = 300_000
/** Other instances learn of the first 429 in this time. */
const NOTED_MS = 1_000
/** Comparisons make at most this share of the calls that the service allows the partner. */
const SHARE = 1 / 5
/** The rate that the service allows one integrator (service-facts 9). */
const SERVICE_LIMIT = 5
/** Calls of comparisons in a second where nothing limits those of clients. */
const UNLIMITED = 50

/** The rate limit of a partner's clients, as comparisons use it. */
export type ClientLimit = Pick<RateLimit, 'acquire' | 'sincePauseMs' | 'nowMs'>

/** Comparison calls to one side for one partner, one at a time. */
export interface PacedSide {
  /** Opens the budget of one comparison; `shared` is the rate limit of the partner's clients, which go first there. */
  open(timeMs: number, shared: ClientLimit | undefined): CallBudget
  /** Runs calls after those that were begun before. */
  alone<Result>(call: () => Promise<Result>): Promise<Result>
  /** The side has answered 429, to a comparison or to a client: no comparison asks it for five minutes. */
  silence(): void
  isSilent(): boolean
  /** Begins with a silence that was known before. */
  silentFor(ms: number): void
}

/** The sides of all partners. */
export interface PacedSides {
  of(partner: Partner, side: Side): PacedSide
}

/** Called with each time for which a side is left alone, ms. */
export type OnSilence = (partner: string, side: Side, forMs: number) => void

interface KnownSide {
  readonly paced: PacedSide
  readonly limit: RateLimit
  rate: ComparisonRate
}

interface ComparisonRate {
  readonly callsPerSecond: number
  /** False where nothing limits the calls of clients either. */
  readonly isLimited: boolean
}

/**
 * Creates the pace of comparisons: a fifth of the partner's calls, behind those of its clients, and never a pause for these. With `store` it
 * holds for all instances together, and no call leaves while that cannot be reached. With `stopped` no call leaves.
 */
export function createPacedSides(
  clock: Clock,
  stopped: AbortSignal,
  store?: PaceStore,
  onSilence: OnSilence = () => undefined,
): PacedSides {
  const sides = new Map<string, KnownSide>()
  return {
    of: (partner, side) => {
      const rate = comparisonRate(partner, side)
      const name = `${partner.id} ${side}`
      const known = sides.get(name)
      if (known === undefined) {
        const slots =
          store &&
          createSharedPace({
            name: `comparison ${name}`,
            store,
            isLimited: () => sides.get(name)?.rate.isLimited !== false,
            keepMs: SILENCE_MS,
            clock,
            stopped,
          })
        const { callsPerSecond } = rate
        const limit = createRateLimit({ callsPerSecond, clock, ...(slots === undefined ? {} : { slots }) })
        const paced = createPacedSide(limit, partner.id, clock, stopped, (forMs) =>
          onSilence(partner.id, side, forMs),
        )
        sides.set(name, { paced, limit, rate })
        return paced
      }
      // A reload may change it.
      if (known.rate.callsPerSecond !== rate.callsPerSecond) known.limit.setRate(rate.callsPerSecond)
      known.rate = rate
      return known.paced
    },
  }
}

/** V2 has no limit in the configuration: the service's, and none on a loopback address. */
function comparisonRate({ callsPerSecond, v2 }: Partner, side: Side): ComparisonRate {
  if (callsPerSecond !== undefined) return { callsPerSecond: callsPerSecond * SHARE, isLimited: true }
  const isLimited = side === 'v2' && v2 !== undefined && !isLoopback(v2.hostname)
  return { callsPerSecond: isLimited ? SERVICE_LIMIT * SHARE : UNLIMITED, isLimited }
}

/** A share of its own in the queue of clients: a call that waits takes no place of theirs. */
export function comparisonQueueKey(partner: string): QueueKey {
  return { partner, owner: `comparison of ${partner}`, isAccepted: () => true }
}

function createPacedSide(
  own: RateLimit,
  partner: string,
  clock: Clock,
  stopped: AbortSignal,
  onSilence: (forMs: number) => void,
): PacedSide {
  const queueKey = comparisonQueueKey(partner)
  let silentUntilMs = -Infinity
  let notedUntilMs = -Infinity
  let last: Promise<unknown> = Promise.resolve()
  const silentFor = (ms: number): void => {
    const untilMs = clock.nowMs() + ms
    if (ms <= 0 || untilMs <= silentUntilMs) return
    silentUntilMs = untilMs
    onSilence(ms)
  }
  const silence = (): void => {
    const nowMs = clock.nowMs()
    if (nowMs >= notedUntilMs) {
      notedUntilMs = nowMs + NOTED_MS
      own.pauseFor(NOTED_MS)
    }
    silentFor(SILENCE_MS)
  }
  const isSilent = (): boolean => clock.nowMs() < silentUntilMs
  return {
    silence,
    isSilent,
    silentFor,
    alone: (call) => {
      const result = last.then(call, call)
      last = result.catch(() => undefined)
      return result
    },
    open: (timeMs, shared) => {
      const deadlineMs = clock.nowMs() + timeMs
      const leftMs = (): number => deadlineMs - clock.nowMs()
      const acquire = async (limit: ClientLimit): Promise<void> => {
        const { admitted } = await limit.acquire('comparison', limit.nowMs() + leftMs(), queueKey, stopped)
        if (!admitted) throw new UnsentError('pace')
      }
      const expectNoSilence = async (): Promise<void> => {
        for (;;) {
          // A client's 429 counts as well.
          const sinceMs = await Promise.all([own.sincePauseMs(), shared?.sincePauseMs() ?? Infinity])
          const known = sinceMs.filter((ms) => ms !== undefined)
          silentFor(SILENCE_MS - Math.min(...known))
          if (isSilent()) throw new UnsentError('silence')
          if (known.length === sinceMs.length) return
          if (leftMs() < RETRY_MS || stopped.aborted) throw new UnsentError('pace')
          await waitFor(RETRY_MS, clock, stopped)
        }
      }
      return {
        take: async () => {
          await expectNoSilence()
          await acquire(own)
          if (shared !== undefined) await acquire(shared)
          // Another instance may have seen a 429 while this call waited.
          await expectNoSilence()
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
