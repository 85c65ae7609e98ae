import { z } from 'zod'
import { gatewayError, rateLimitReply, type Reply } from '../http/reply.ts'
import { faceOf } from '../http/request.ts'
import type { Random } from '../random.ts'
import { readBody, type Setting } from './setting.ts'

const scope = {
  /** The method, in upper or lower case. Default: all methods. */
  method: z.string().optional(),
  /** A text that the path must contain, ignoring case. Default: all paths. */
  path: z.string().optional(),
  face: z.enum(['V2', 'V3']).optional(),
  /** The number of matching requests that the fault leaves alone before it takes effect. */
  skip: z.int().min(0).default(0),
  /** The maximum number of requests that the fault affects. Default: no limit. */
  count: z.int().min(1).optional(),
  /** The probability with which the fault affects a matching request. The random numbers depend on the seed of the sandbox. */
  probability: z.number().min(0).max(1).default(1),
}

const schema = z.discriminatedUnion('kind', [
  z.strictObject({ ...scope, kind: z.literal('latency'), ms: z.int().min(0).max(600_000) }),
  z.strictObject({
    ...scope,
    kind: z.literal('status'),
    status: z.int().min(200).max(599),
    body: z.string().optional(),
    headers: z.record(z.string(), z.string()).default({}),
  }),
  z.strictObject({ ...scope, kind: z.literal('rateLimit'), retryAfterSeconds: z.int().min(0).default(1) }),
  z.strictObject({ ...scope, kind: z.literal('reset'), apply: z.boolean().default(false) }),
  z.strictObject({ ...scope, kind: z.literal('stall'), apply: z.boolean().default(false) }),
  z.strictObject({ ...scope, kind: z.literal('truncate'), bytes: z.int().min(0) }),
  z.strictObject({ ...scope, kind: z.literal('brokenGzip') }),
  z.strictObject({ ...scope, kind: z.literal('slowBody'), bytesPerSecond: z.int().min(1) }),
  /**
   * Waits `ms` milliseconds before each request of a V3 batch. `resetAfterMs` also resets the connection after this number of milliseconds,
   * while the service still handles the batch.
   */
  z.strictObject({
    ...scope,
    kind: z.literal('pace'),
    ms: z.int().min(1).max(600_000),
    resetAfterMs: z.int().min(0).max(600_000).optional(),
  }),
  /** Hides the writes of the last `lagMs` milliseconds from reads. Default: hides the writes that were made after the fault was set. */
  z.strictObject({ ...scope, kind: z.literal('staleRead'), lagMs: z.int().min(0).optional() }),
])

/**
 * A fault that the sandbox injects. `latency` delays the request. `status` and `rateLimit` answer the request without applying it. `reset`
 * resets the connection and `stall` never replies, either without or after applying the request. `truncate` and `brokenGzip` damage the
 * reply, and `slowBody` sends the reply slowly. `pace` handles the requests of a V3 batch slowly, even after the connection is lost.
 * `staleRead` hides recent writes. A `status` or `rateLimit` fault with a path also applies to individual requests inside a V3 batch.
 */
type Fault = z.output<typeof schema>

export interface Disturbance {
  readonly latencyMs: number
  readonly reply?: Reply
  /** How the reply is lost. `apply` is true if the request is applied before the loss. */
  readonly loss?: { readonly how: 'reset' | 'stall'; readonly apply: boolean }
  /** The number of the last effect (accepted write) that a read sees. */
  readonly asOf?: number
  /** The number of bytes of the body after which the reply breaks off. */
  readonly truncateAt?: number
  readonly brokenGzip?: boolean
  readonly bytesPerSecond?: number
  /** The delay before each request of a V3 batch, in milliseconds. */
  readonly paceMs?: number
  /** The time in milliseconds after which the connection is reset, while the service continues to handle the request. */
  readonly resetAfterMs?: number | undefined
}

/** The configured faults of one port. The body of a PUT is a fault or a list of faults. */
export type FaultPlan = ReturnType<typeof createFaultPlan>

interface Counted {
  readonly fault: Fault
  seen: number
  struck: number
}

/**
 * Creates a plan without faults. `random` decides whether a fault with a probability applies. `lastSeq` returns the number of the last
 * effect, or with `lagMs` the number of the last effect that is at least this many milliseconds old.
 */
export function createFaultPlan(random: Random, lastSeq: (lagMs?: number) => number) {
  let counted: Counted[] = []
  let seqWhenSet = 0
  const strikes = (one: Counted, target: string, path: string): boolean => {
    const { fault } = one
    const matches =
      (fault.method === undefined || fault.method.toUpperCase() === target) &&
      (fault.path === undefined || path.toLowerCase().includes(fault.path.toLowerCase())) &&
      (fault.face === undefined || fault.face === faceOf(path))
    if (!matches || one.struck >= (fault.count ?? Infinity)) return false
    one.seen += 1
    if (one.seen <= fault.skip || (fault.probability < 1 && !random.chance(fault.probability))) return false
    one.struck += 1
    return true
  }
  const effectOf = (fault: Fault, before: Disturbance): Partial<Disturbance> => {
    switch (fault.kind) {
      case 'latency':
        return { latencyMs: before.latencyMs + fault.ms }
      case 'status':
        return { reply: statusReply(fault.status, fault.body, fault.headers) }
      case 'rateLimit':
        return { reply: rateLimitReply(fault.retryAfterSeconds) }
      case 'reset':
      case 'stall':
        return { loss: { how: fault.kind, apply: fault.apply } }
      case 'truncate':
        return { truncateAt: fault.bytes }
      case 'brokenGzip':
        return { brokenGzip: true }
      case 'slowBody':
        return { bytesPerSecond: fault.bytesPerSecond }
      case 'pace':
        return { paceMs: fault.ms, resetAfterMs: fault.resetAfterMs }
      case 'staleRead':
        return { asOf: fault.lagMs === undefined ? seqWhenSet : lastSeq(fault.lagMs) }
    }
  }
  /** Combines the effects of several faults. If two faults exclude each other, the later fault applies. */
  const join = (struck: readonly Counted[]): Disturbance =>
    struck.reduce<Disturbance>((joined, { fault }) => ({ ...joined, ...effectOf(fault, joined) }), {
      latencyMs: 0,
    })
  const setting: Setting = {
    put: (body) => {
      const faults = readBody(z.array(schema), Array.isArray(body) ? body : [body], 'The faults')
      counted = faults.map((fault) => ({ fault, seen: 0, struck: 0 }))
      seqWhenSet = lastSeq()
    },
    clear: () => {
      counted = []
    },
    current: () =>
      counted.map(({ fault, struck }) => ({
        fault,
        struck,
        remaining: fault.count === undefined ? undefined : fault.count - struck,
      })),
  }
  return {
    ...setting,
    /**
     * Returns the combined effect of the faults that apply to a request, or `undefined` if no fault applies. The request counts for the
     * `skip` and `count` of each matching fault.
     */
    strike: (method: string, path: string): Disturbance | undefined => {
      const struck = counted.filter((one) => strikes(one, method, path))
      return struck.length === 0 ? undefined : join(struck)
    },
    /**
     * Returns the reply to a request inside a batch by a `status` or `rateLimit` fault that has a path, or `undefined` if no fault matches.
     */
    strikeInside: (method: string, path: string): Reply | undefined => {
      const isInside = ({ fault }: Counted): boolean =>
        fault.path !== undefined && (fault.kind === 'status' || fault.kind === 'rateLimit')
      return join(counted.filter((one) => isInside(one) && strikes(one, method, path))).reply
    },
  }
}

function statusReply(
  status: number,
  body: string | undefined,
  headers: Readonly<Record<string, string>>,
): Reply {
  if (body === undefined) return gatewayError(status, 'The service is not able to answer.', headers)
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body }
}
