import * as z from 'zod'

import { isLoopback } from '../http/address.ts'
import { readTarget } from '../http/request-target.ts'
import { Secret } from './secret.ts'
import { fieldSecret, httpUrl, key, ms, percent, secret, textOrSecret, timeWithin } from './values.ts'

/** One hash, or the hashes of several keys that one client alternates between. */
const keyHash = z.string().meta({ pattern: '^[0-9a-fA-F]{64}$' })
const keyHashes = z
  .union([keyHash, z.array(keyHash).min(1).max(32)])
  .refine(
    (given) => [given].flat().every((text) => /^[0-9a-f]{64}$/i.test(text)),
    'must be 64 hexadecimal digits, or a list of such',
  )
  .transform((given) => [given].flat().map((text) => text.toLowerCase()))

/** A header value is a credential: every caller that knows it writes as the partner, so it is never printed. */
const headerValue = textOrSecret.transform((value) => (typeof value === 'string' ? new Secret(value) : value))

const unreachablePrefix =
  'must be a path as it is after decoding: no escapes, dot segments, parameters, blanks or empty segments'

/** Returns true if a request path can have this prefix. Requests with any other form of path are refused. */
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
    z.strictObject({ any: key('Every request matches.', z.literal(true)) }),
    z.strictObject({
      subscriptionKeySha256: key(
        "SHA-256 of the subscription key in hexadecimal, or a list of the hashes of one client's keys.",
        keyHashes,
      ),
    }),
    z.strictObject({
      header: key(
        'A header that the client sends.',
        z.strictObject({
          name: key('Name of the header, in any case.', z.string().min(1)),
          value: key('Value of the header, or a secret; never printed.', headerValue),
        }),
      ),
    }),
    z.strictObject({
      pathPrefix: key(
        'Beginning of the path, compared by whole decoded segments in any case.',
        z.string().startsWith('/').refine(isPlainPath, unreachablePrefix),
      ),
    }),
  ],
  'needs exactly one of any: true, subscriptionKeySha256, header {name, value}, pathPrefix',
)

const auth = z.strictObject({
  mode: key(
    "passThrough forwards the client's token; clientCredentials fetches tokens for the partner.",
    z.enum(['passThrough', 'clientCredentials']).default('passThrough'),
  ),
  tokenUrl: key(
    'Address of the token endpoint, https.',
    httpUrl
      .refine(
        (url) => url.protocol === 'https:' || isLoopback(url.hostname),
        'must be https: a secret is sent there',
      )
      .optional(),
  ),
  clientId: key('Client id for the token endpoint; may be a secret.', textOrSecret.optional()),
  clientSecret: key('Client secret for the token endpoint.', secret.optional()),
  scope: key('Scope of the token.', z.string().min(1).optional()),
  organisation: key('Sent as acr_values=orgselected:<id>.', z.string().min(1).optional()),
})

const rateMessage = 'must be a number above 0 and up to 1000, or none'
const callsPerSecond = z
  .union([z.number().meta({ exclusiveMinimum: 0, maximum: 1_000 }), z.literal('none')], rateMessage)
  .refine((rate) => rate === 'none' || (rate > 0 && rate <= 1_000), rateMessage)

const partnerV3 = z.strictObject({
  writeMode: key(
    'single: one POST per record; batch: V3 $batch; auto: $batch where V3 accepts it.',
    z.enum(['single', 'batch', 'auto']).default('single'),
  ),
  batchFormat: key('Format of V3 batches.', z.enum(['multipart', 'json']).default('multipart')),
  batchRecords: key('Maximum number of records in one V3 $batch.', z.int().min(2).max(1_000).default(100)),
  batchRecordMs: key(
    'Longest time that V3 takes for one record of a $batch. For each record, the head of the reply may come so much later, and V3 may so much longer be applying a $batch whose reply was lost: its records are not posted again before.',
    timeWithin(1, 60_000).prefault('500ms'),
  ),
  concurrency: key(
    'Maximum number of concurrent POSTs of one batch in single mode.',
    z.int().min(1).max(1024).default(16),
  ),
  budgetMs: key('Time for all records of one batch.', ms.prefault('90s')),
  callsPerSecond: key(
    'Calls to V3 per second with one key, or none for no limit; default 5, on a loopback address none.',
    callsPerSecond.optional(),
  ),
  readBackAfterMs: key(
    'Pauses before each read-back of a record whose outcome is unknown. Their sum is how stale a read of V3 may be: a mark that V3 shows later may be posted twice.',
    z.array(ms).max(10).prefault(['250ms', '750ms', '2s']),
  ),
  bodyProfile: key(
    'Members of a V3 record that are sent: full, or minimal.',
    z.enum(['full', 'minimal']).default('full'),
  ),
  eventType: key('Type of Event in V3 records.', z.string().default('Attendance.AttendanceSession')),
  codeType: key('Type of AttendanceCode in V3 records.', z.string().default('Attendance.Lookup')),
  subscriptionKey: key(
    "Subscription key of the partner for V3 (default: the client's key).",
    fieldSecret.optional(),
  ),
  auth: key('Source of the bearer token for V3.', auth.prefault({})),
})

/** Codes have up to three characters (service-facts 7). A guid that lost a digit must not pass as a code. */
const codeOrGuid = z
  .string()
  .regex(
    /^(?:\S{1,10}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$/,
    'must be an attendance code such as "-", or the guid of one',
  )

const reads = z.strictObject({
  needsRecordedBy: key(
    'true: a V3 row without RecordedBy is not a recorded mark.',
    z.boolean().default(true),
  ),
  unmarkedCodes: key(
    'Attendance codes that mean "no mark": ids, or letters such as -, which the code lookup of V3 resolves.',
    z
      .array(codeOrGuid)
      .max(100)
      .default(() => ['-']),
  ),
  histories: key(
    'true: fill AttendanceHistorys from StatutoryAttendanceRecordHistorys, at one more call per 40 marks.',
    z.boolean().default(false),
  ),
})

/** A host name in the form that URLs use, so that names can be compared: lower case, without a port, and IPv6 in brackets. */
const hostName = z
  .string()
  .refine(
    (text) => /^(?:[^/?#@:\\\s]+|\[[0-9a-f:.]+\])$/i.test(text) && URL.canParse(`http://${text}`),
    'must be a host name without scheme, port and path, such as service.example',
  )
  .transform((text) => new URL(`http://${text}`).hostname)

const stage = z.enum(['legacy', 'shadow', 'canary', 'v3', 'complete'])

/** Schools in the form in which a token or a header names them. */
const schools = z
  .array(z.string().min(1).max(255))
  .max(10_000)
  .default(() => [])

const claim = z.string().min(1).max(255)
const canary = z.strictObject({
  percent: key('Share of the schools that V3 serves, 0 to 100.', percent.default(0)),
  claim: key('Claim of a JWT bearer token that names the school.', claim.default('organisation')),
  header: key(
    'Header that names the school, for tokens without that claim; without both, each client is one unit.',
    z.string().min(1).max(255).optional(),
  ),
  always: key('Schools that V3 serves whatever the share is.', schools),
  never: key('Schools that V2 serves whatever the share is.', schools),
})

/** The names of the built-in rules (docs/comparison.md). A partner's own rule must have another name. */
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
  name: key(
    'Name of the rule in reports.',
    z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be 1 to 63 small letters, digits or dashes')
      .refine((name) => !builtInRules.includes(name), 'is the name of a built-in rule'),
  ),
  reason: key('Why the difference is accepted; reports show it.', z.string().trim().min(1).max(500)),
  owner: key('Who answers for the rule.', z.string().trim().min(1).max(100)),
  expires: key(
    'Last day of the rule, YYYY-MM-DD (UTC): afterwards the difference counts again.',
    z.iso.date('must be a day, YYYY-MM-DD'),
  ),
  path: key(
    'Path of the field as reports show it, such as Comment.',
    z
      .string()
      .regex(
        /^(?:[A-Za-z0-9_]+|\((?:row|other)\))(?:\/(?:[A-Za-z0-9_@.-]+|\(other\)))*$/,
        'must be a path as reports show it, such as Comment or Enrolments/StartDate',
      ),
  ),
  when: key(
    'What the difference must be; all that is given must hold.',
    z
      .strictObject({
        v2Class: key('Class of the value of V2 as reports show it; one * stands for any text.', className),
        v3Class: key('Class of the value of V3, such as "* trimmed", "* cut" or "time:+3600s".', className),
      })
      .refine(
        ({ v2Class, v3Class }) => v2Class !== undefined || v3Class !== undefined,
        'must name v2Class, v3Class or both: a rule without one would hide every difference of the field',
      ),
  ),
})

const compare = z.strictObject({
  percent: key('Share of the exchanges at shadow that is compared, in percent.', percent.default(100)),
  settleMs: key(
    'How long the other side may take to show a mark before it counts as missing. Raise it for a service that shows marks later.',
    timeWithin(0, 600_000).prefault('30s'),
  ),
  rules: key(
    'Differences that are accepted until a day: such a field counts as equivalent (docs/comparison.md).',
    z
      .array(ownRule)
      .max(100)
      .refine(
        (rules) => new Set(rules.map(({ name }) => name)).size === rules.length,
        'must have unique names',
      )
      .default(() => []),
  ),
})

/** An error code of the service. Codes of the adapter begin with `ADP_`. */
const serviceErrorCode = z.string().regex(/^(?!ADP_)[A-Z][A-Z0-9_]{1,39}$/)

export const partnerSchema = z.strictObject({
  id: key(
    'Unique name of the partner in logs, metrics and the journal.',
    z
      .string()
      .regex(
        /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
        'must be 1 to 63 letters, digits, dots, dashes or underscores',
      ),
  ),
  match: key(
    'How requests of this partner are recognised: any, subscriptionKeySha256, header or pathPrefix.',
    match,
  ),
  clients: key(
    'open: lets a partner that matches by any or pathPrefix use a key or tokens of its own; every caller of the address then writes with them.',
    z.literal('open', 'must be open, or left out').optional(),
  ),
  identity: key(
    'How the clients of one partner are separated.',
    z
      .strictObject({
        claims: key(
          'Claims of a JWT bearer token that separate the batches of clients. client_id stands for client_id, azp, appid or sub: the first one that a token has.',
          z.array(claim).max(16).default(['iss', 'client_id', 'organisation']),
        ),
      })
      .prefault({}),
  ),
  stage: key(
    'Stage at which the partner begins: legacy, shadow, canary, v3 or complete. Once the partner has begun, markbridge rollout changes its stage, and this key has no effect.',
    stage.default('v3'),
  ),
  guard: key(
    'What guards do at canary once V3 does worse than V2: back takes the partner back to V2, warn only says so (log, metric, console).',
    z.enum(['back', 'warn']).default('back'),
  ),
  canary: key('The part of the traffic that V3 serves at stage canary.', canary.prefault({})),
  check: key(
    'What V3 serves at canary and v3 and is read back.',
    z
      .strictObject({
        v2: key('Share of these writes and reads that is compared with V2, in percent.', percent.default(0)),
      })
      .prefault({}),
  ),
  v2: key(
    'How V2 is called for this partner.',
    z
      .strictObject({
        baseUrl: key('Address of V2 for this partner (default: upstreams.v2.baseUrl).', httpUrl.optional()),
      })
      .prefault({}),
  ),
  layout: key(
    'Layout of batch replies: flat (the legacy contract), nested (generic OData clients, such as Microsoft.OData.Client or the SAP Cloud SDK), or auto (by the request).',
    z.enum(['flat', 'nested', 'auto']).default('flat'),
  ),
  serviceHosts: key(
    'Allowed hosts of absolute URLs inside a batch, without scheme and port (default: any).',
    z.array(hostName).min(1).max(100).optional(),
  ),
  quirks: key(
    "Deviations of the partner's client from the documented interface.",
    z
      .strictObject({
        dataEnvelope: key(
          'true: records in {"d":…}, pages in {"d":{"results":[…]}}.',
          z.boolean().default(false),
        ),
        msgtypeResponse: key(
          'true: parts of a batch reply are application/http; msgtype=response.',
          z.boolean().default(false),
        ),
        mismatch: key(
          'Post or drop the records when the ids of header and body differ.',
          z.enum(['post', 'drop']).default('post'),
        ),
      })
      .prefault({}),
  ),
  errorMessages: key(
    'Texts of V2 for the codes of its errors, such as ATT_VAL_2, where they are not those of the adapter (compare learn finds them).',
    z.record(serviceErrorCode, z.string().min(1).max(500)).default({}),
  ),
  unmappedFields: key(
    'Fields that are not in the V2 write form: strict refuses the record, pass forwards fields that V3 has, report drops and counts them.',
    z.enum(['strict', 'pass', 'report']).default('report'),
  ),
  changeProcessName: key(
    'ChangeProcessName of the marks in V3; null sends none.',
    z.string().max(255).nullable().default('Markbridge'),
  ),
  reads: key('How V2 reads are translated.', reads.prefault({})),
  compare: key('How what V2 and V3 answer is compared.', compare.prefault({})),
  v3: key('How V3 is called for this partner.', partnerV3.prefault({})),
})
