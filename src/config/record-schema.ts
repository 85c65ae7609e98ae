import * as z from 'zod'

import { keySecret } from './key-secret.ts'

const DAY_MS = 86_400_000

/** What is kept of a partner's exchanges. */
export const recordSchema = z.strictObject({
  to: z.string().min(1),
  percent: z.number().min(0).max(100).default(100),
  key: keySecret.optional(),
  pseudonyms: z
    .union(
      [z.literal(true), z.strictObject({ key: keySecret })],
      'must be true, or { key: { env: NAME } } or { key: { file: path } }',
    )
    .optional(),
  maxBytes: z.int().positive().default(1_000_000_000),
  maxAgeDays: z.number().positive().max(3_660).default(30),
})

/** The recordings of a partner in a checked configuration. */
export type RecordConfig = z.infer<typeof recordSchema>

/** The age of a recording at which it is removed, ms. */
export const maxAgeMsOf = ({ maxAgeDays }: RecordConfig): number => maxAgeDays * DAY_MS
