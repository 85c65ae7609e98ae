import * as z from 'zod'

import { isLoopback } from '../http/loopback.ts'
import { readTarget } from '../http/request-target.ts'
import { Secret } from './secret.ts'
import { bytes, httpUrl, keySecret, ms, percent, secret, textOrSecret } from './values.ts'

/** One hash, or the hashes of keys that one client changes between. */
const keyHash = z.string().meta({ pattern: '^[0-9a-fA-F]{64}$' })
const keyHashes = z
  .union([keyHash, z.array(keyHash).min(1).max(32)])
  .refine(
    (given) => [given].flat().every((text) => /^[0-9a-f]{64}$/i.test(text)),
    'must be 64 hexadecimal digits, or a list of such',
  )
  .transform((given) => [given].flat().map((text) => text.toLowerCase()))

/** A credential: every caller that knows it writes as the partner, so it is never printed. */
const headerValue = textOrSecret.transform((value) => (typeof value === 'string' ? new Secret(value) : value))

const unreachablePrefix =
  'must be a path as it is after decoding: no escapes, dot segments, parameters, blanks or empty segments'

/** True for a prefix that paths can have; requests with any other are refused. */
function isPlainPath(prefix: string): boolean {
  try {
    const { query, authority } = readTarget(encodeURI(prefix))
    return !prefix.includes('%') && query === '' && authority === undefined
  } catch {
    return false
  }
}

const match = z.union(
  [
    z.strictObject({ any: z.literal(true).describe('Every request matches.') }),
    z.strictObject({
      subscriptionKeySha256: keyHashes.describe(
        "SHA-256 of the subscription key in hexadecimal, or a list of the hashes of one client's keys.",
      ),
    }),
    z.strictObject({
      header: z
        .strictObject({
          name: z.string().min(1).describe('Name of the header, in any case.'),
          value: headerValue.describe('Value of the header, or a secret; never printed.'),
        })
        .describe('A header that the client sends.'),
    }),
    z.strictObject({
      pathPrefix: z
        .string()
        .startsWith('/')
        .refine(isPlainPath, unreachablePrefix)
        .describe('Beginning of the path, compared by whole decoded segments in any case.'),
    }),
  ],
  'needs exactly one of any: true, subscriptionKeySha256, header {name, value}, pathPrefix',
)

const auth = z.strictObject({
  mode: z
    .enum(['passThrough', 'clientCredentials'])
    .default('passThrough')
    .describe("passThrough forwards the client's token; clientCredentials fetches tokens for the partner."),
  tokenUrl: httpUrl
    .refine(
      (url) => url.protocol === 'https:' || isLoopback(url.hostname),
      'must be https: a secret is sent there',
    )
    .optional()
    .describe('Address of the token endpoint, https.'),
  clientId: textOrSecret.optional().describe('Client id for the token endpoint; may be a secret.'),
  clientSecret: secret.optional().describe('Client secret for the token endpoint.'),
  scope: z.string().min(1).optional().describe('Scope of the token.'),
  organisation: z.string().min(1).optional().describe('Sent as acr_values=orgselected:<id>.'),
})

const rateMessage = 'must be a number above 0 and up to 1000, or none'
const callsPerSecond = z
  .union([z.number().meta({ exclusiveMinimum: 0, maximum: 1_000 }), z.literal('none')], rateMessage)
  .refine((rate) => rate === 'none' || (rate > 0 && rate <= 1_000), rateMessage)

const partnerV3 = z.strictObject({
  writeMode: z
    .enum(['single', 'batch', 'auto'])
    .default('single')
    .describe('single: one POST per record; batch: V3 $batch; auto: $batch where V3 accepts it.'),
  batchFormat: z.enum(['multipart', 'json']).default('multipart').describe('Format of V3 batches.'),
  concurrency: z
    .int()
    .min(1)
    .max(1024)
    .default(16)
    .describe('Maximum number of concurrent POSTs of one batch in single mode.'),
  budgetMs: ms.default(90_000).describe('Time in milliseconds for all records of one batch.'),
  callsPerSecond: callsPerSecond
    .optional()
    .describe(
      'Calls to V3 per second with one key, or none for no limit; default 5, on a loopback address none.',
    ),
  readBackAfterMs: z
    .array(ms)
    .max(10)
    .default([250, 750, 2_000])
    .describe(
      'Pauses in milliseconds before each read-back of a record whose outcome is unknown. Their sum is how stale a read of V3 may be: a mark that V3 shows later may be posted twice.',
    ),
  bodyProfile: z
    .enum(['full', 'minimal'])
    .default('full')
    .describe('Members of a V3 record that are sent: full, or minimal.'),
  eventType: z.string().default('Attendance.AttendanceSession').describe('Type of Event in V3 records.'),
  codeType: z.string().default('Attendance.Lookup').describe('Type of AttendanceCode in V3 records.'),
  subscriptionKey: secret
    .optional()
    .describe("Subscription key of the partner for V3 (default: the client's key)."),
  auth: auth.prefault({}).describe('Source of the bearer token for V3.'),
})

/** Codes have up to three characters (service-facts 7); a guid that lost a digit must not pass for one. */
const codeOrGuid = z
  .string()
  .regex(
    /^(?:\S{1,10}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$/,
    'must be an attendance code such as "-", or the guid of one',
  )

const reads = z.strictObject({
  needsRecordedBy: z
    .boolean()
    .default(true)
    .describe('true: a V3 row without RecordedBy is not a recorded mark.'),
  unmarkedCodes: z
    .array(codeOrGuid)
    .max(100)
    .default(() => ['-'])
    .describe(
      'Attendance codes that mean "no mark": ids, or letters such as -, which the code lookup of V3 resolves.',
    ),
  histories: z
    .boolean()
    .default(false)
    .describe(
      'true: fill AttendanceHistorys from StatutoryAttendanceRecordHistorys, at one more call per 40 marks.',
    ),
})

/** A host name as URLs have it, so that it can be compared: lower case, no port, IPv6 in brackets. */
const hostName = z
  .string()
  .refine(
    (text) => /^(?:[^/?#@:\\\s]+|\[[0-9a-f:.]+\])$/i.test(text) && URL.canParse(`http://${text}`),
    'must be a host name without scheme, port and path, such as service.example',
  )
  .transform((text) => new URL(`http://${text}`).hostname)

const stage = z.enum(['legacy', 'shadow', 'canary', 'v3', 'complete'])

/** Schools as a token or a header names them. */
const schools = z
  .array(z.string().min(1).max(255))
  .max(10_000)
  .default(() => [])

const claim = z.string().min(1).max(255)
const canary = z.strictObject({
  percent: percent.default(0).describe('Share of the schools that V3 serves, 0 to 100.'),
  claim: claim.default('organisation').describe('Claim of a JWT bearer token that names the school.'),
  header: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe(
      'Header that names the school, for tokens without that claim; without both, each client is one unit.',
    ),
  always: schools.describe('Schools that V3 serves whatever the share is.'),
  never: schools.describe('Schools that V2 serves whatever the share is.'),
})

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
    /^(?=[^*]*\*?[^*]*$)[a-z*][a-z:0-9+<>* -]{0,59}$/,
    'must be a class of a comparison such as length:10-20, in which one * stands for any text',
  )
  .optional()

const ownRule = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be 1 to 63 small letters, digits or dashes')
    .refine((name) => !builtInRules.includes(name), 'is the name of a built-in rule')
    .describe('Name of the rule in reports.'),
  reason: z.string().trim().min(1).max(500).describe('Why the difference is accepted; reports show it.'),
  owner: z.string().trim().min(1).max(100).describe('Who answers for the rule.'),
  expires: z.iso
    .date('must be a day, YYYY-MM-DD')
    .describe('Last day of the rule, YYYY-MM-DD (UTC): afterwards the difference counts again.'),
  path: z
    .string()
    .regex(
      /^(?:[A-Za-z0-9_]+|\((?:row|other)\))(?:\/(?:[A-Za-z0-9_@.-]+|\(other\)))*$/,
      'must be a path as reports show it, such as Comment or Enrolments/StartDate',
    )
    .describe('Path of the field as reports show it, such as Comment.'),
  when: z
    .strictObject({
      v2Class: className.describe('Class of the value of V2 as reports show it; one * stands for any text.'),
      v3Class: className.describe('Class of the value of V3, such as "* trimmed", "* cut" or "time:+3600s".'),
    })
    .refine(
      ({ v2Class, v3Class }) => v2Class !== undefined || v3Class !== undefined,
      'must name v2Class, v3Class or both: a rule without one would hide every difference of the field',
    )
    .describe('What the difference must be; all that is given must hold.'),
})

const compare = z.strictObject({
  percent: percent.default(100).describe('Share of the exchanges at shadow that is compared, in percent.'),
  settleMs: z
    .int()
    .min(0)
    .max(600_000)
    .default(30_000)
    .describe(
      'How long the other side may take to show a mark, in milliseconds, before it counts as missing. Raise it for a service that shows marks later.',
    ),
  rules: z
    .array(ownRule)
    .max(100)
    .refine(
      (rules) => new Set(rules.map(({ name }) => name)).size === rules.length,
      'must have names that differ from each other',
    )
    .default(() => [])
    .describe(
      'Differences that are accepted until a day: such a field counts as equivalent (docs/comparison.md).',
    ),
})

const record = z.strictObject({
  to: z
    .string()
    .min(1)
    .describe('Folder of the recordings, for this partner alone; it is created where it is missing.'),
  key: keySecret.optional().describe('Encrypts recordings: 32 bytes, as 64 hexadecimal digits or base64.'),
  pseudonyms: z
    .union(
      [
        z.literal(true),
        z.strictObject({ key: keySecret.describe('32 bytes: 64 hexadecimal digits, or base64.') }),
      ],
      'must be true, or { key: { env: NAME } } or { key: { file: path } }',
    )
    .optional()
    .describe(
      'true: replace every id, name and text, under a key that ends with the process. With key: under that one, in all processes alike.',
    ),
  maxBytes: bytes
    .default(1_000_000_000)
    .describe(
      'Bound of the folder in bytes: the oldest recordings are removed first, and each after 30 days.',
    ),
})

/** The recordings of a partner in a checked configuration. */
export type RecordConfig = z.infer<typeof record>

/** Of the service: codes of the adapter begin ADP_. */
const serviceErrorCode = z.string().regex(/^(?!ADP_)[A-Z][A-Z0-9_]{1,39}$/)

/** One entry of `partners`. */
export const partnerSchema = z.strictObject({
  id: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
      'must be 1 to 63 letters, digits, dots, dashes or underscores',
    )
    .describe('Unique name of the partner in logs, metrics and the journal.'),
  match: match.describe(
    'How requests of this partner are recognised: any, subscriptionKeySha256, header or pathPrefix.',
  ),
  clients: z
    .literal('open', 'must be open, or left out')
    .optional()
    .describe(
      'open: lets a partner that matches by any or pathPrefix use a key or tokens of its own; every caller of the address then writes with them.',
    ),
  identity: z
    .strictObject({
      claims: z
        .array(claim)
        .max(16)
        .default(['iss', 'client_id', 'organisation'])
        .describe('Claims of a JWT bearer token that separate the batches of clients.'),
    })
    .prefault({})
    .describe('How the clients of one partner are separated.'),
  stage: stage
    .default('v3')
    .describe(
      'Stage at which the partner begins: legacy, shadow, canary, v3 or complete. A stage that was set later, with markbridge rollout, wins. Once the partner has begun, the file may lower its stage and not raise it.',
    ),
  stageOverride: stage
    .optional()
    .describe(
      'Lowers the stage, also while the journal cannot be reached; it never raises it. Once the journal can be reached, the lower stage is kept there.',
    ),
  canary: canary.prefault({}).describe('The part of the traffic that V3 serves at stage canary.'),
  check: z
    .strictObject({
      v2: percent
        .default(0)
        .describe('Share of these writes and reads that is compared with V2, in percent.'),
    })
    .prefault({})
    .describe('What V3 serves at canary and v3 and is read back.'),
  v2: z
    .strictObject({
      baseUrl: httpUrl.optional().describe('Address of V2 for this partner (default: upstreams.v2.baseUrl).'),
      replay: z
        .enum(['stored', 'relay'])
        .default('stored')
        .describe(
          'A repeated batch at shadow and canary: stored gives the whole reply that V2 gave to it, where the journal has it; relay sends V2 every batch, which then writes its marks again.',
        ),
    })
    .prefault({})
    .describe('How V2 is called for this partner.'),
  layout: z
    .enum(['flat', 'nested', 'auto'])
    .default('flat')
    .describe(
      'Layout of batch replies: flat (the legacy contract), nested (generic OData clients, such as Microsoft.OData.Client or the SAP Cloud SDK), or auto (by the request).',
    ),
  serviceHosts: z
    .array(hostName)
    .min(1)
    .max(100)
    .optional()
    .describe('Allowed hosts of absolute URLs inside a batch, without scheme and port (default: any).'),
  quirks: z
    .strictObject({
      dataEnvelope: z
        .boolean()
        .default(false)
        .describe('true: records in {"d":…}, pages in {"d":{"results":[…]}}.'),
      msgtypeResponse: z
        .boolean()
        .default(false)
        .describe('true: parts of a batch reply are application/http; msgtype=response.'),
      mismatch: z
        .enum(['post', 'drop'])
        .default('post')
        .describe('Post or drop the records when the ids of header and body differ.'),
    })
    .prefault({})
    .describe("Deviations of the partner's client from the documented interface."),
  errorMessages: z
    .record(serviceErrorCode, z.string().min(1).max(500))
    .default({})
    .describe(
      'Texts of V2 for the codes of its errors, such as ATT_VAL_2, where they are not those of the adapter (compare learn finds them).',
    ),
  unmappedFields: z
    .enum(['strict', 'pass', 'report'])
    .default('report')
    .describe(
      'Fields that are not in the V2 write form: strict refuses the record, pass forwards fields that V3 has, report drops and counts them.',
    ),
  changeProcessName: z
    .string()
    .max(255)
    .nullable()
    .default('Markbridge')
    .describe('ChangeProcessName of the marks in V3; null sends none.'),
  reads: reads.prefault({}).describe('How V2 reads are translated.'),
  compare: compare.prefault({}).describe('How what V2 and V3 answer is compared.'),
  record: record
    .optional()
    .describe(
      'Keeps exchanges of this partner as files (docs/comparison.md); key or pseudonyms is required. A reload changes it.',
    ),
  v3: partnerV3.prefault({}).describe('How V3 is called for this partner.'),
})
