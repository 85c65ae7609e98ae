import type { Random } from '../random.ts'
import { faceOf } from '../edge/request.ts'
import type { Fault } from './fault.ts'

/** The request properties that a fault matches on. */
export interface FaultTarget {
  readonly method: string
  readonly path: string
}

/** A fault with how often it may still strike; undefined: without end. */
export interface ActiveFault {
  readonly fault: Fault
  readonly remaining: number | undefined
  readonly struck: number
}

/** The configured faults, and their effect on each request. */
export interface FaultPlan {
  /** Replaces all faults. `seq` is the last effect, beyond which stale reads see nothing. */
  set(faults: readonly Fault[], seq: number): void
  clear(): void
  list(): ActiveFault[]
  /** The faults that strike this request; each is counted. */
  strike(target: FaultTarget): Fault[]
  /** The faults that answer this request of a batch in place of the service: those that name a path and a status. */
  strikeInside(target: FaultTarget): Fault[]
  /** The last effect when the faults were set. */
  seqWhenSet(): number
}

interface Counted {
  readonly fault: Fault
  seen: number
  struck: number
}

/** Creates a plan without faults; `random` draws for those with a probability. */
export function createFaultPlan(random: Random): FaultPlan {
  let counted: Counted[] = []
  let seqWhenSet = 0
  const matches = ({ method, path, face }: Fault, target: FaultTarget): boolean =>
    (method === undefined || method.toUpperCase() === target.method) &&
    (path === undefined || target.path.toLowerCase().includes(path.toLowerCase())) &&
    (face === undefined || face === faceOf(target.path))
  const strikes = (one: Counted, target: FaultTarget): boolean => {
    const { fault } = one
    if (!matches(fault, target) || one.struck >= (fault.count ?? Infinity)) return false
    one.seen += 1
    if (one.seen <= fault.skip || (fault.probability < 1 && !random.chance(fault.probability))) return false
    one.struck += 1
    return true
  }
  return {
    set: (faults, seq) => {
      counted = faults.map((fault) => ({ fault, seen: 0, struck: 0 }))
      seqWhenSet = seq
    },
    clear: () => {
      counted = []
    },
    list: () =>
      counted.map(({ fault, struck }) => ({
        fault,
        struck,
        remaining: fault.count === undefined ? undefined : fault.count - struck,
      })),
    strike: (target) =>
      counted.length === 0 ? [] : counted.filter((one) => strikes(one, target)).map((one) => one.fault),
    strikeInside: (target) =>
      counted
        .filter(
          ({ fault }) => fault.path !== undefined && (fault.kind === 'status' || fault.kind === 'rateLimit'),
        )
        .filter((one) => strikes(one, target))
        .map((one) => one.fault),
    seqWhenSet: () => seqWhenSet,
  }
}
