import { z } from 'zod'
import { gatewayError, rateLimitReply, type Reply } from '../http/reply.ts'
import { faceOf } from '../http/request.ts'
import type { Random } from '../random.ts'
import { readBody, type Setting } from './setting.ts'

/** Which requests a fault meets, and how often. */
const scope = {
  /** Method in any case; absent: all. */
  method: z.string().optional(),
  /** Text that the path contains, in any case; absent: all. */
  path: z.string().optional(),
  face: z.enum(['V2', 'V3']).optional(),
  /** Matching requests that pass before the fault begins. */
  skip: z.int().min(0).default(0),
  /** How many requests it meets; absent: all from then on. */
  count: z.int().min(1).optional(),
  /** Share of the matching requests that it meets, drawn from the sandbox's own seed. */
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
  /** The requests of a V3 batch are handled one after another, each so long after the one before. `resetAfterMs`: the connection ends in the middle. */
  z.strictObject({
    ...scope,
    kind: z.literal('pace'),
    ms: z.int().min(1).max(600_000),
    resetAfterMs: z.int().min(0).max(600_000).optional(),
  }),
  /** Reads see no write of the last `lagMs` by the service's clock; absent: none made since the fault was set. */
  z.strictObject({ ...scope, kind: z.literal('staleRead'), lagMs: z.int().min(0).optional() }),
])

/**
 * A fault to be injected: a delay before the request is handled (`latency`); an answer without handling it (`status`,
 * `rateLimit`); a connection reset or no answer at all, before or after the request was applied (`reset`, `stall`); a
 * damaged answer (`truncate`, `brokenGzip`, `slowBody`); a V3 batch that is handled request by request, also after its connection was
 * lost (`pace`); a read that sees no recent write (`staleRead`). A `status` or
 * `rateLimit` that names a path also strikes single requests inside a V3 batch.
 */
type Fault = z.output<typeof schema>

/** The combined effect of all faults that strike one request. */
export interface Disturbance {
  readonly latencyMs: number
  /** Sent instead of handling the request. */
  readonly reply?: Reply
  /** The connection is reset, or never answered, before the request is applied or after. */
  readonly loss?: { readonly how: 'reset' | 'stall'; readonly apply: boolean }
  /** The effect beyond which a read sees nothing. */
  readonly asOf?: number
  /** The reply ends after this number of bytes of its body. */
  readonly truncateAt?: number
  readonly brokenGzip?: boolean
  readonly bytesPerSecond?: number
  /** Before each request of a V3 batch the service waits so long. */
  readonly paceMs?: number
  /** The connection is reset after this time, while the service goes on. */
  readonly resetAfterMs?: number | undefined
}

/** The configured faults of one port. The body of a PUT is one fault or a list. */
export type FaultPlan = ReturnType<typeof createFaultPlan>

interface Counted {
  readonly fault: Fault
  seen: number
  struck: number
}

/** Creates a plan without faults. `random` draws for those with a probability; `lastSeq` is the last effect, or the last before a time. */
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
  /** Of two faults that exclude each other the later counts. */
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
    // How often each struck and may still strike; undefined: without end.
    current: () =>
      counted.map(({ fault, struck }) => ({
        fault,
        struck,
        remaining: fault.count === undefined ? undefined : fault.count - struck,
      })),
  }
  return {
    ...setting,
    /** The effect of the faults that strike this request, each of which is counted; undefined: none strikes. */
    strike: (method: string, path: string): Disturbance | undefined => {
      const struck = counted.filter((one) => strikes(one, method, path))
      return struck.length === 0 ? undefined : join(struck)
    },
    /** The answer of the faults that strike this request of a batch, in place of the service's: those with a path and a status. */
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
