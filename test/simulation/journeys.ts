import type { Random } from '../../src/sandbox/random.ts'
import type { StoreWeather } from './simulated-database.ts'
import type { Journey, ServiceRequest } from './simulated-network.ts'
import type { FaultKind, Rates } from './swarm.ts'
import type { Actor, World } from './world.ts'

interface JourneyOptions {
  readonly random: Random
  readonly rates: Rates
  readonly onFault: (kind: FaultKind) => void
  /** True once there are no more faults. */
  readonly isCalm: () => boolean
  /** Returns true for a kind of fault that may occur now. */
  readonly has: (kind: FaultKind) => boolean
}

/** The longest time that a slow service takes for a write, in milliseconds. */
export const LONG_CALL_MS = 3_500

/** Creates a function that draws whether a fault of a given kind occurs now. */
function createFaultDraw({ random, rates, onFault }: Pick<JourneyOptions, 'random' | 'rates' | 'onFault'>) {
  return (kind: keyof Rates, share = 1): boolean => {
    if (!random.chance(rates[kind] * share)) return false
    onFault(kind)
    return true
  }
}

export function createJourneysToV3({ isCalm, has, ...options }: JourneyOptions) {
  const { random, onFault } = options
  const occurs = createFaultDraw(options)
  return ({ method, path }: ServiceRequest): Journey => {
    const longest = has('slowService') ? 200 : 20
    const quick = { thereMs: 1 + random.below(longest), backMs: 1 + random.below(longest) }
    if (isCalm()) return quick
    if (method === 'POST' && has('longCalls') && random.chance(0.3)) {
      onFault('longCalls')
      return { ...quick, thereMs: random.below(LONG_CALL_MS) }
    }
    if (occurs('refusedConnections')) return { ...quick, refused: true }
    if (occurs('lostBefore'))
      return {
        ...quick,
        thereMs: undefined,
        breaksAfterMs: random.chance(0.7) ? random.below(200) : undefined,
      }
    if (occurs('lostAfter'))
      return {
        ...quick,
        backMs: undefined,
        breaksAfterMs: random.chance(0.7) ? 40 + random.below(300) : undefined,
      }
    // The connection breaks while the request is in transit. The request still arrives before the last read-back.
    if (method === 'POST' && occurs('late'))
      return { thereMs: 100 + random.below(350), backMs: undefined, breaksAfterMs: random.below(50) }
    if (occurs('stalled')) return { thereMs: quick.thereMs, backMs: 900 + random.below(400) }
    if (occurs('cut')) return { ...quick, cutAfter: random.below(path.endsWith('$batch') ? 2_000 : 200) }
    return quick
  }
}

export function createJourneysToV2({ isCalm, has, ...options }: JourneyOptions) {
  const { random, onFault } = options
  const occurs = createFaultDraw(options)
  return ({ method }: ServiceRequest): Journey => {
    const longest = has('slowV2') ? 600 : 20
    const [thereMs, backMs] = [1 + random.below(longest), 1 + random.below(longest)]
    if (isCalm()) return { thereMs, backMs }
    if (method === 'POST' && has('longCalls') && random.chance(0.3)) {
      onFault('longCalls')
      return { thereMs: random.below(LONG_CALL_MS), backMs }
    }
    if (occurs('refusedConnections')) return { thereMs, backMs, refused: true }
    if (occurs('lostBefore')) return { thereMs: undefined, backMs, breaksAfterMs: random.below(200) }
    // The connection never breaks before V2 has the request, because the adapter cannot wait for a request that V2 receives later.
    if (occurs('lostV2Replies'))
      return {
        thereMs,
        backMs: undefined,
        breaksAfterMs: random.chance(0.7) ? thereMs + random.below(300) : undefined,
      }
    if (occurs('stalled')) return { thereMs, backMs: 900 + random.below(400) }
    if (occurs('cut')) return { thereMs, backMs, cutAfter: random.below(600) }
    return { thereMs, backMs }
  }
}

export function createStoreWeather(world: World, { isCalm, has, ...options }: JourneyOptions): StoreWeather {
  const { random } = options
  const occurs = createFaultDraw(options)
  /** The time until which each process cannot reach the store. */
  const downUntilMs = new Map<Actor, number>()
  return {
    delayMs: () => {
      if (isCalm()) return random.next()
      if (has('storeStalls') && random.chance(0.01)) {
        options.onFault('storeStalls')
        return 800 + random.below(5_000)
      }
      return occurs('storeSlow') ? random.below(800) : random.next()
    },
    // An instance makes about fifty queries when it starts, so each query fails rarely.
    faultOf: (what, actor) => {
      if (isCalm()) return undefined
      if (world.nowMs < (downUntilMs.get(actor) ?? 0)) return { kind: 'refused' }
      if (what === 'commit' && occurs('storeDown', 1 / 2)) {
        downUntilMs.set(actor, world.nowMs + 300 + random.below(5_000))
        return { kind: random.pick(['refused', 'unanswered']) }
      }
      const share = what === 'commit' ? 1 / 2 : 1 / 50
      if (occurs('storeRefused', share)) return { kind: 'refused' }
      return occurs('storeUnanswered', share) ? { kind: 'unanswered' } : undefined
    },
  }
}
