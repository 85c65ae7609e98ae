import * as z from 'zod'

import { AdapterError } from '../../errors.ts'
import { type Evidence, noEvidence } from './evidence.ts'

const VERSION = 2
/** Decimals of a logarithm; rounded down, so that evidence never grows by being stored. */
const PRECISION = 1_000

const count = z.int().min(0)
const logs = z.array(z.number())
const trials = z.strictObject({
  trials: count,
  unknown: count,
  serverError: count,
  refused: count,
  slow: count,
})
const schema = z.object({
  revision: count,
  episode: z.int().min(1),
  actedMs: z.number().optional(),
  counted: z.strictObject({ v2: count, v3: count }),
  windows: count,
  logs,
  without: z.array(z.tuple([z.string(), logs])),
  firstUnit: z.string().optional(),
  hasOthers: z.boolean(),
  recent: z.strictObject({ v2: trials, v3: trials }),
})
const current = z.object({ version: z.literal(VERSION) })
/** That of several tests, as it was kept before. */
const superseded = z.object({ version: z.literal(1), kinds: z.array(z.unknown()) })

/** Formats evidence as the text that is stored: JSON of bounded size. */
export function formatEvidence({ logs, without, ...counts }: Evidence): string {
  const rounded = (all: Evidence['logs']): number[] =>
    all.map((log) => Math.floor(log * PRECISION) / PRECISION)
  const units = [...without].map(([unit, rest]) => [unit, rounded(rest)])
  return JSON.stringify({ version: VERSION, ...counts, logs: rounded(logs), without: units })
}

/**
 * Parses stored evidence. Error: `ADP_JOURNAL_DAMAGED` for anything that `formatEvidence` did not write; evidence that cannot be read must not
 * begin anew unnoticed.
 */
export function parseEvidence(text: string): Evidence {
  try {
    const kept: unknown = JSON.parse(text)
    if (superseded.safeParse(kept).success) return noEvidence
    current.parse(kept)
    const { without, ...evidence } = schema.parse(kept)
    return { ...evidence, without: new Map(without) }
  } catch (cause) {
    const message = 'The stored evidence of the guards cannot be read: it is not as it was written.'
    throw new AdapterError('ADP_JOURNAL_DAMAGED', message, { cause })
  }
}
