import * as z from 'zod'

/** The rules that Markbridge has itself (docs/comparison.md); a rule of a partner's own has another name. */
export const builtInRules: readonly string[] = [
  'instant-form',
  'guid-case',
  'missing-null',
  'history-left-out',
  'order-unasked',
  'expand-list-of-v3',
  'servers-own-value',
  'process-name',
  'assumed-refusal',
  'context-address',
  'media-type-parameters',
  'no-outcome-shown',
  'refused-whole',
]

const className = z
  .string()
  .regex(
    /^[a-z][a-z:0-9+<> -]{0,59}\*?$/,
    'must be a class of a comparison such as length:10-20, or the beginning of one and *',
  )

/** What a difference must be: everything that is given must hold. */
const condition = z
  .strictObject({
    kind: z.enum(['value', 'type', 'null', 'missing', 'extra', 'count', 'order']).optional(),
    v2Class: className.optional(),
    v3Class: className.optional(),
    trimmed: z.literal(true, 'must be true, or left out').optional(),
    ignoreCase: z.literal(true, 'must be true, or left out').optional(),
    cutTo: z.int().min(1).max(100_000).optional(),
    maxShiftSeconds: z.number().min(0).max(86_400).optional(),
  })
  .refine(
    (when) => Object.values(when).some((value) => value !== undefined),
    'must name at least one condition: a rule without one would hide every difference of the field',
  )

const ownRule = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be 1 to 63 small letters, digits or dashes')
    .refine((name) => !builtInRules.includes(name), 'is the name of a built-in rule'),
  reason: z.string().trim().min(1).max(500),
  owner: z.string().trim().min(1).max(100),
  expires: z.iso.date('must be a day, YYYY-MM-DD'),
  path: z
    .string()
    .regex(
      /^(?:[A-Za-z0-9_]+|\((?:row|other)\))(?:\/(?:[A-Za-z0-9_@.-]+|\(other\)))*$/,
      'must be a path as reports show it, such as Comment or Enrolments/StartDate',
    ),
  when: condition,
})

/** How what V2 and V3 answer for a partner is compared. */
export const compareSchema = z.strictObject({
  percent: z.number().min(0).max(100).default(100),
  settleMs: z.int().min(0).max(600_000).default(30_000),
  rules: z
    .array(ownRule)
    .max(100)
    .refine(
      (rules) => new Set(rules.map(({ name }) => name)).size === rules.length,
      'must have names that differ from each other',
    )
    .default(() => []),
})
