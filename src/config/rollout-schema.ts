import * as z from 'zod'

import { Secret } from './secret.ts'
import { key, timeWithin } from './values.ts'

const DAY_MS = 86_400_000

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

const operator = z.strictObject({
  name: key('Unique name of the operator in the audit trail.', operatorName),
  tokenSha256: key('SHA-256 of the token of the operator in hexadecimal; never printed.', tokenSha256),
  role: key(
    'operator changes stages and approves changes of others; approver approves and goes back; viewer only reads.',
    z.enum(['operator', 'approver', 'viewer']),
  ),
  partners: key(
    'Ids of the only partners that the operator sees and changes (default: all).',
    z.array(z.string().min(1)).min(1).optional(),
  ),
  reveal: key(
    'true: the console may show this operator the values of a record; each time with a reason in the audit trail.',
    z.boolean().default(false),
  ),
})

const evidence = z.strictObject({
  limit: key(
    'Limit of the share of learners and days that differ: its upper confidence bound has to be below. 0.005 takes 598 of them without a difference.',
    z.number().min(0.0001).max(0.5).default(0.005),
  ),
  confidence: key('Confidence of that bound.', z.number().min(0.5).max(0.9999).default(0.95)),
  schoolShare: key(
    'Share of the counted learners and days that one school may make up; a partner with fewer than five schools needs more than the default.',
    z.number().min(0.01).max(1).default(0.2),
  ),
  days: key(
    'Days on which requests have to have been compared, and days that the partner has to have been at its stage.',
    z.int().min(0).max(90).default(5),
  ),
})

/** Who may change the stage of a partner, and how a change takes place. */
export const rolloutSchema = z.strictObject({
  approval: key(
    'two: a step forward waits for the approval of a second operator, and a partner without a stored stage begins at legacy.',
    z.enum(['one', 'two']).default('one'),
  ),
  operators: key(
    'Who may change stages, each with a token (default: every user of the system who can open the journal).',
    z.array(operator).max(200).prefault([]),
  ),
  resendWindowMs: key(
    'Time for which a batch that V2 served unrecorded may come again; canary is refused until it is over. Set it to the time for which your clients repeat a batch, where that is longer.',
    timeWithin(1_000, DAY_MS).prefault('15m'),
  ),
  evidence: key('What has to be seen and compared before rollout advise says ready.', evidence.prefault({})),
})
