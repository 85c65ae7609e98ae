import { z } from 'zod'
import { gatewayError, rateLimitReply, type Reply } from '../http/reply.ts'
import { faceOf } from '../http/request.ts'
import type { Random } from '../random.ts'
import { readBody, type Setting } from './setting.ts'

const scope = {
  /** The method in any case. Default: all methods. */
  method: z.string().optional(),
  /** Text that the path contains, in any case. Default: all paths. */
  path: z.string().optional(),
  face: z.enum(['V2', 'V3']).optional(),
  /** Number of matching requests that pass before the fault takes effect. */
  skip: z.int().min(0).default(0),
  /** Maximum number of requests that the fault affects. Default: no limit. */
  count: z.int().min(1).optional(),
  /** Probability that a matching request is affected, drawn from the seed of the sandbox. */
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
  /** Handles the requests of a V3 batch with a delay of `ms` before each. `resetAfterMs` resets the connection meanwhile. */
  z.strictObject({
    ...scope,
    kind: z.literal('pace'),
    ms: z.int().min(1).max(600_000),
    resetAfterMs: z.int().min(0).max(600_000).optional(),
  }),
  /** Hides from reads the writes of the last `lagMs` milliseconds. Default: the writes made since the fault was set. */
  z.strictObject({ ...scope, kind: z.literal('staleRead'), lagMs: z.int().min(0).optional() }),
])

/**
 * A fault to inject. `latency` delays the request. `status` and `rateLimit` reply without handling it. `reset` resets the connection and
 * `stall` never replies, either before or after the request is applied. `truncate`, `brokenGzip` and `slowBody` damage the reply. `pace`
 * handles a V3 batch request by request, even after its connection is lost. `staleRead` hides recent writes. A `status` or `rateLimit`
 * fault with a path also applies to individual requests inside a V3 batch.
 */
type Fault = z.output<typeof schema>

export interface Disturbance {
  readonly latencyMs: number
  readonly reply?: Reply
  /** `apply` says whether the request is applied first. */
  readonly loss?: { readonly how: 'reset' | 'stall'; readonly apply: boolean }
  /** The number of the last effect that a read sees. */
  readonly asOf?: number
  /** The number of bytes of the body after which the reply breaks off. */
  readonly truncateAt?: number
  readonly brokenGzip?: boolean
  readonly bytesPerSecond?: number
  /** The delay before each request of a V3 batch. */
  readonly paceMs?: number
  /** The connection is reset after this time, while the service continues. */
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
 * Creates a plan without faults. `random` decides for faults with a probability. `lastSeq` returns the number of the last effect, or of the
 * last effect at least `lagMs` milliseconds old.
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
  /** Combines faults. Of two faults that exclude each other, the later one applies. */
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
    // `remaining` is `undefined` if the fault has no limit.
    current: () =>
      counted.map(({ fault, struck }) => ({
        fault,
        struck,
        remaining: fault.count === undefined ? undefined : fault.count - struck,
      })),
  }
  return {
    ...setting,
    /** Returns `undefined` if no fault applies to the request. Counts each fault that applies. */
    strike: (method: string, path: string): Disturbance | undefined => {
      const struck = counted.filter((one) => strikes(one, method, path))
      return struck.length === 0 ? undefined : join(struck)
    },
    /** Returns the reply that a `status` or `rateLimit` fault with a path gives to a request inside a batch, or `undefined` if no fault matches. */
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
