import * as z from 'zod'

import { Secret } from './secret.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** No colon: `os:<user>` is the name of a user of the system, who is not in the file. */
const operatorName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$/,
    'must be 1 to 63 letters, digits, dots, dashes, underscores or @',
  )
  .refine(
    (name) => !/^(?:guard|markbridge)$/i.test(name),
    'is a name that Markbridge itself acts under in the audit trail',
  )

/** Printing the configuration does not show it: a token that was chosen badly could be guessed from its hash. */
const tokenSha256 = z
  .string()
  .meta({ pattern: '^[0-9a-fA-F]{64}$' })
  .refine(
    (text) => /^[0-9a-f]{64}$/i.test(text),
    'must be 64 hexadecimal digits: the SHA-256 of the token, never the token itself',
  )
  .transform((text) => new Secret(text.toLowerCase()))

/** Who may change the stage of a partner, and how a change takes place. */
export const rolloutSchema = z.strictObject({
  approval: z.enum(['one', 'two']).default('one'),
  operators: z
    .array(
      z.strictObject({
        name: operatorName,
        tokenSha256,
        role: z.enum(['operator', 'approver', 'viewer']),
      }),
    )
    .max(200)
    .default([]),
  drainMs: z
    .int()
    .min(1_000)
    .max(10 * MINUTE_MS)
    .default(10_000),
  resendWindowMs: z
    .int()
    .min(1_000)
    .max(24 * HOUR_MS)
    .default(15 * MINUTE_MS),
  stateFile: z.string().min(1).optional(),
  guards: z
    .strictObject({
      action: z.enum(['back', 'hold', 'notify']).default('back'),
      coolDownMs: z
        .int()
        .positive()
        .max(7 * 24 * HOUR_MS)
        .default(HOUR_MS),
    })
    .prefault({}),
  evidence: z
    .strictObject({
      limit: z.number().min(0.0001).max(0.5).default(0.005),
      confidence: z.number().min(0.5).max(0.9999).default(0.95),
      comparedShare: z.number().min(0).max(1).default(0.9),
      schoolShare: z.number().min(0.01).max(1).default(0.2),
      days: z.int().min(0).max(90).default(5),
      records: z.int().min(1).max(1_000_000).default(1_000),
      batches: z.int().min(1).max(1_000_000).default(100),
      codes: z.int().min(1).max(100).default(4),
      traits: z
        .array(z.enum(['late', 'comment', 'correction']))
        .max(3)
        .default(['late', 'comment', 'correction']),
    })
    .prefault({}),
})

/** The rollout section of a checked configuration. */
export type RolloutConfig = z.infer<typeof rolloutSchema>
