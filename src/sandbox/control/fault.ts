import { z } from 'zod'
import { readRules } from './read-rules.ts'

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
  z.strictObject({ ...scope, kind: z.literal('staleRead') }),
])

/**
 * A fault to be injected: a delay before the request is handled (`latency`); an answer without handling it (`status`,
 * `rateLimit`); a connection reset or no answer at all, before or after the request was applied (`reset`, `stall`); a
 * damaged answer (`truncate`, `brokenGzip`, `slowBody`); a read that sees no write made since the fault was set
 * (`staleRead`). A `status` or `rateLimit` that names a path also strikes single requests inside a V3 batch.
 */
export type Fault = z.output<typeof schema>

/** Reads the body of `PUT /_sandbox/faults`: one fault or a list. Errors: `ADP_USAGE` with every fault of the form. */
export function readFaults(body: unknown): Fault[] {
  return readRules(z.array(schema), Array.isArray(body) ? body : [body], 'The faults')
}
