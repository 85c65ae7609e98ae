import { z } from 'zod'

import { listFaults, readValues } from '../config/index.ts'
import { bytes } from '../config/values.ts'
import { AdapterError, type ErrorDetail } from '../errors.ts'
import { securityDomains } from './learner/learner-sets.ts'

/** The name of a security domain. The error for an unknown name suggests the nearest known name, which config/parse.ts finds in `known`. */
const domain = z.string().refine((name) => securityDomains.includes(name), {
  error: 'must be a permission of the service',
  params: { known: securityDomains },
})

const keys = z.array(z.string().min(1))
const tokens = z.array(z.strictObject({ token: z.string().min(1), domains: z.array(domain) }))
/** The maximum number of calls per second with one subscription key. Default: no limit. */
const callsPerSecond = z.int().positive().optional()
const port = z.int().min(0).max(65535)

/** The credentials that the sandbox accepts in addition to the built-in credentials. */
const callers = {
  keys: keys.default([]),
  tokens: tokens.default([]),
  clients: z
    .array(
      z.strictObject({
        id: z.string().min(1),
        secret: z.string().min(1),
        organisation: z.string().min(1).optional(),
        domains: z.array(domain).optional(),
      }),
    )
    .default([]),
  callsPerSecond,
}

/** The gateway of V2, for a sandbox in which V2 has a separate port. */
const v2 = z.strictObject({
  /** Default: the keys of the main port. */
  keys: keys.optional(),
  /** Default: the tokens of the main port. */
  tokens: tokens.optional(),
  callsPerSecond,
})

export const sandboxFileSchema = z.strictObject({
  host: z.string().min(1).default('127.0.0.1'),
  port: port.default(0),
  v2Port: port.optional(),
  v2: v2.optional(),
  seed: z.int().min(0).max(0xffff_ffff).default(1),
  scale: z.enum(['class', 'school']).default('class'),
  db: z.string().min(1).default(':memory:'),
  now: z.iso.datetime({ offset: true, error: 'must be a date and time with offset' }).optional(),
  onExisting: z.enum(['replace', 'duplicate', 'conflict']).default('replace'),
  pageSize: z.int().positive().default(1000),
  maxDays: z.int().positive().default(90),
  batch: z.boolean().default(true),
  ...callers,
  maxBodyBytes: bytes.prefault('32MiB'),
})

export type SandboxOptions = z.input<typeof sandboxFileSchema>

export type SandboxSettings = z.output<typeof sandboxFileSchema>

/** Validates options and fills in defaults. Throws `ADP_USAGE` with one detail per fault, as for a configuration file. */
export function readOptions(options: SandboxOptions): SandboxSettings {
  const { value, faults: invalid } = readValues(sandboxFileSchema, options)
  const faults = value === undefined ? invalid : conflictsOf(value)
  if (value !== undefined && faults.length === 0) return value
  throw new AdapterError(
    'ADP_USAGE',
    `The sandbox cannot be started with these options:\n${listFaults(faults, 'the options')}`,
    { details: faults.map((fault) => ({ ...fault, code: 'ADP_USAGE' })) },
  )
}

/** Finds options that require another option. The schema cannot check this, because the other option may come from the command line. */
function conflictsOf({ v2, v2Port }: SandboxSettings): ErrorDetail[] {
  if (v2 === undefined || v2Port !== undefined) return []
  return [{ code: 'ADP_USAGE', target: 'v2', message: 'requires v2Port, the port of V2' }]
}
