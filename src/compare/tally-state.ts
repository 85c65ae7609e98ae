import * as z from 'zod'

import { AdapterError } from '../errors.ts'
import { differenceKinds } from './verdict.ts'

const count = z.int().nonnegative()
const kind = z.enum(differenceKinds)
const verdictCounts = z.strictObject({
  same: count,
  equivalent: count,
  differs: count,
  onlyV2: count,
  onlyV3: count,
  unknown: count,
})
const groups = z.array(z.tuple([z.string(), verdictCounts]))

const schema = z.strictObject({
  /** Version of this form. */
  schema: z.literal(1),
  dropped: count,
  skipped: count,
  askedAgain: count,
  verdicts: verdictCounts,
  /** Path, kind, class of V2, class of V3, count. */
  differences: z.array(z.tuple([z.string(), kind, z.string(), z.string(), count])),
  /** Rule, path, count. */
  equivalences: z.array(z.tuple([z.string(), z.string(), count])),
  /** Name of an expired rule of the partner's own, fields that it would have made equivalent. */
  expired: z.array(z.tuple([z.string(), count])),
  noise: z.strictObject({
    measured: z.boolean(),
    records: count,
    /** Path, kind, count. */
    differences: z.array(z.tuple([z.string(), kind, count])),
  }),
  kinds: groups,
  codeClasses: groups,
  days: groups,
  /** One for each bound of `delayBounds`. */
  delays: z.array(count),
})

/** The counts of a run as a checkpoint keeps them: JSON, without a value of a record. */
export type TallyState = z.infer<typeof schema>

/** Reads counts from the parsed JSON of a checkpoint. Error: `ADP_USAGE` where it is none. */
export function parseTallyState(value: unknown): TallyState {
  const { success, data } = schema.safeParse(value)
  if (success) return data
  throw new AdapterError(
    'ADP_USAGE',
    'The counts of the checkpoint cannot be read: it is damaged, or of another version of Markbridge. Begin the run anew, without --resume.',
  )
}
