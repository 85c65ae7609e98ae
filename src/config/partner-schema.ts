import * as z from 'zod'

import { isLoopback } from '../http/address.ts'
import { readTarget } from '../http/request-target.ts'
import { Secret } from './secret.ts'
import { fieldSecret, httpUrl, key, ms, percent, secret, textOrSecret, timeWithin } from './values.ts'

/** The SHA-256 of a subscription key. A client that alternates between several keys needs a list of hashes. */
const keyHash = z.string().meta({ pattern: '^[0-9a-fA-F]{64}$' })
const keyHashes = z
  .union([keyHash, z.array(keyHash).min(1).max(32)])
  .refine(
    (given) => [given].flat().every((text) => /^[0-9a-f]{64}$/i.test(text)),
    'must be 64 hexadecimal digits, or a list of such hashes',
  )
  .transform((given) => [given].flat().map((text) => text.toLowerCase()))

/**
 * The value of the header that identifies a partner. The value is never printed, because every caller that knows the value can write as the
 * partner.
 */
const headerValue = textOrSecret.transform((value) => (typeof value === 'string' ? new Secret(value) : value))

const unreachablePrefix =
  'must be a decoded path without escapes, dot segments, empty segments, parameters or trailing spaces'

/** Returns true if the path of an accepted request can begin with this prefix. Other prefixes would never match. */
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
    z.strictObject({ any: key('Every request belongs to the partner.', z.literal(true)) }),
    z.strictObject({
      subscriptionKeySha256: key(
        "SHA-256 hash of the subscription key in hexadecimal, or a list of the hashes of one client's keys.",
        keyHashes,
      ),
    }),
    z.strictObject({
      header: key(
        'A request header that identifies the partner.',
        z.strictObject({
          name: key('Name of the header, in upper or lower case.', z.string().min(1)),
          value: key(
            'Value of the header, as text or as a reference to a secret. The value is never printed.',
            headerValue,
          ),
        }),
      ),
    }),
    z.strictObject({
      pathPrefix: key(
        'Beginning of the request path. Whole decoded segments are compared, without regard to case.',
        z.string().startsWith('/').refine(isPlainPath, unreachablePrefix),
      ),
    }),
  ],
  'must have exactly one of any: true, subscriptionKeySha256, header {name, value}, pathPrefix',
)

const auth = z.strictObject({
  mode: key(
    "passThrough: forwards the client's token. clientCredentials: fetches tokens for the partner.",
    z.enum(['passThrough', 'clientCredentials']).default('passThrough'),
  ),
  tokenUrl: key(
    'URL of the token endpoint. It must be https.',
    httpUrl
      .refine(
        (url) => url.protocol === 'https:' || isLoopback(url.hostname),
        'must be https, because the adapter sends a secret to this address',
      )
      .optional(),
  ),
  clientId: key('Client id for the token endpoint. It may be a secret.', textOrSecret.optional()),
  clientSecret: key('Client secret for the token endpoint.', secret.optional()),
  scope: key('Scope that the token request asks for.', z.string().min(1).optional()),
  organisation: key(
    'Id of the organisation, which the token request sends as acr_values=orgselected:<id>.',
    z.string().min(1).optional(),
  ),
})

const rateMessage = 'must be a number above 0 and up to 1000, or none'
const callsPerSecond = z
  .union([z.number().meta({ exclusiveMinimum: 0, maximum: 1_000 }), z.literal('none')], rateMessage)
  .refine((rate) => rate === 'none' || (rate > 0 && rate <= 1_000), rateMessage)

const partnerV3 = z.strictObject({
  writeMode: key(
    'How records are posted. single: one POST per record. batch: several records in one $batch of V3. auto: a $batch if V3 accepts one, otherwise one POST per record.',
    z.enum(['single', 'batch', 'auto']).default('single'),
  ),
  batchFormat: key('Format of a $batch of V3.', z.enum(['multipart', 'json']).default('multipart')),
  batchRecords: key('Maximum number of records in one $batch of V3.', z.int().min(2).max(1_000).default(100)),
  batchRecordMs: key(
    'Longest time that V3 needs for one record of a $batch. The timeout of the reply to a $batch grows by this time for each of its records. After a lost reply, the adapter also waits this long for each record before it posts the records again.',
    timeWithin(1, 60_000).prefault('500ms'),
  ),
  concurrency: key(
    'Maximum number of concurrent POSTs of one batch if records are posted singly.',
    z.int().min(1).max(1024).default(16),
  ),
  budgetMs: key(
    'Time within which the adapter makes all calls to V3 for one request, with their retries. A batch is one request.',
    ms.prefault('90s'),
  ),
  callsPerSecond: key(
    'Maximum number of calls to V3 per second with one subscription key, or none for no limit (default: 5, or none if V3 has a loopback address).',
    callsPerSecond.optional(),
  ),
  readBackAfterMs: key(
    'Pauses before each read-back of a record whose outcome is unknown. The sum of the pauses must be at least the time that V3 takes to show a new mark. A mark that V3 shows later may be posted twice.',
    z.array(ms).max(10).prefault(['250ms', '750ms', '2s']),
  ),
  bodyProfile: key(
    'Members that a posted V3 record contains. full: all members. minimal: only Attendee, Event, AttendanceCode and Qualifier.',
    z.enum(['full', 'minimal']).default('full'),
  ),
  eventType: key('The Type of Event in posted records.', z.string().default('Attendance.AttendanceSession')),
  codeType: key('The Type of AttendanceCode in posted records.', z.string().default('Attendance.Lookup')),
  subscriptionKey: key(
    "Subscription key of the partner for V3 (default: the client's key).",
    fieldSecret.optional(),
  ),
  auth: key('The bearer token that the adapter sends to V3.', auth.prefault({})),
})

/**
 * An attendance code or its guid. Codes have up to three characters (service-facts 7). The limit of 10 characters refuses a mistyped guid.
 */
const codeOrGuid = z
  .string()
  .regex(
    /^(?:\S{1,10}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$/,
    'must be an attendance code such as "-", or the guid of an attendance code',
  )

const reads = z.strictObject({
  needsRecordedBy: key(
    'true: a row of V3 without RecordedBy does not count as a recorded mark.',
    z.boolean().default(true),
  ),
  unmarkedCodes: key(
    'Attendance codes that mean "no mark": the guid of a code, or the code itself, such as -. The adapter looks the guid of a code up in V3.',
    z
      .array(codeOrGuid)
      .max(100)
      .default(() => ['-']),
  ),
  histories: key(
    'true: fills AttendanceHistorys from StatutoryAttendanceRecordHistorys of V3, which takes one more call per 40 marks.',
    z.boolean().default(false),
  ),
})

/** A host name without a port. The result is in lower case, with IPv6 in brackets, so that it can be compared with the host of a URL. */
const hostName = z
  .string()
  .refine(
    (text) => /^(?:[^/?#@:\\\s]+|\[[0-9a-f:.]+\])$/i.test(text) && URL.canParse(`http://${text}`),
    'must be a host name without scheme, port or path, such as service.example',
  )
  .transform((text) => new URL(`http://${text}`).hostname)

const stage = z.enum(['legacy', 'shadow', 'canary', 'v3', 'complete'])

/** Schools, by the names that the claim of a token or the header contains. */
const schools = z
  .array(z.string().min(1).max(255))
  .max(10_000)
  .default(() => [])

const claim = z.string().min(1).max(255)
const canary = z.strictObject({
  percent: key('Percentage of the schools that V3 serves, 0 to 100.', percent.default(0)),
  claim: key('Claim of a JWT bearer token that names the school.', claim.default('organisation')),
  header: key(
    'Header that names the school if the token has no such claim. If a request has neither, the client counts as one school.',
    z.string().min(1).max(255).optional(),
  ),
  always: key('Schools that V3 serves at any percentage.', schools),
  never: key('Schools that V2 serves at any percentage.', schools),
})

/** The names of the built-in comparison rules (docs/comparison.md). A rule in the configuration must have another name. */
export const builtInRules: readonly string[] = [
  'instant-form',
  'guid-case',
  'missing-null',
  'history-left-out',
  'order-unasked',
  'expand-list-of-v3',
  'servers-own-value',
  'context-address',
  'media-type-parameters',
  'no-outcome-shown',
  'refused-whole',
]

const className = z
  .string()
  .regex(
    /^(?=[^*]*\*?[^*]*$)[a-z*][a-z:0-9+<>* -]{0,59}$/,
    'must be a class as reports show it, such as length:10-20. One * stands for any text',
  )
  .optional()

const ownRule = z.strictObject({
  name: key(
    'Name of the rule, as reports show it.',
    z
      .string()
      .regex(
        /^[a-z0-9][a-z0-9-]{0,62}$/,
        'must be 1 to 63 lower-case letters, digits or dashes, and not begin with a dash',
      )
      .refine((name) => !builtInRules.includes(name), 'is the name of a built-in rule'),
  ),
  reason: key(
    'Reason why the difference is accepted. Reports show the reason.',
    z.string().trim().min(1).max(500),
  ),
  owner: key('Person or team that is responsible for the rule.', z.string().trim().min(1).max(100)),
  expires: key(
    'Last day of the rule, YYYY-MM-DD (UTC). The difference counts again from the next day.',
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
    'Conditions of the rule. A difference must meet every given condition.',
    z
      .strictObject({
        v2Class: key('Class of the value of V2, as reports show it. One * stands for any text.', className),
        v3Class: key('Class of the value of V3, such as "* trimmed", "* cut" or "time:+3600s".', className),
      })
      .refine(
        ({ v2Class, v3Class }) => v2Class !== undefined || v3Class !== undefined,
        'must have v2Class, v3Class or both. Without a class the rule would hide every difference of the field',
      ),
  ),
})

const compare = z.strictObject({
  percent: key('Percentage of the exchanges at shadow that are compared.', percent.default(100)),
  settleMs: key(
    'Time within which the other side must show a mark. After this time the mark counts as missing. Raise it for a service that shows marks later.',
    timeWithin(0, 600_000).prefault('30s'),
  ),
  rules: key(
    'Differences that are accepted until a given day. A field with such a difference counts as equivalent (docs/comparison.md).',
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
    'How the adapter recognises requests of this partner: by any, subscriptionKeySha256, header or pathPrefix.',
    match,
  ),
  clients: key(
    'open: the adapter may use its own credentials for V3 (v3.subscriptionKey or v3.auth) although match is any or pathPrefix. Every caller of the address then writes with these credentials.',
    z.literal('open', 'must be open, or left out').optional(),
  ),
  identity: key(
    'How the adapter distinguishes the clients of one partner.',
    z
      .strictObject({
        claims: key(
          'Claims of a JWT bearer token that distinguish clients. client_id stands for the first of the claims client_id, azp, appid and sub that a token has.',
          z.array(claim).max(16).default(['iss', 'client_id', 'organisation']),
        ),
      })
      .prefault({}),
  ),
  stage: key(
    'Stage at which the partner begins: legacy, shadow, canary, v3 or complete. Once the journal contains a stage of the partner, only markbridge rollout changes the stage, and this key has no effect.',
    stage.default('v3'),
  ),
  guard: key(
    'What a guard does at canary below 100 % if V3 does worse than V2. back: moves the partner back to V2. warn: only reports the finding in the log, a metric and the console.',
    z.enum(['back', 'warn']).default('back'),
  ),
  canary: key('The schools that V3 serves at stage canary.', canary.prefault({})),
  check: key(
    'Comparison with V2 of the requests that V3 served at the stages canary and v3.',
    z
      .strictObject({
        v2: key(
          'Percentage of the writes and reads served by V3 that the adapter compares with V2.',
          percent.default(0),
        ),
      })
      .prefault({}),
  ),
  v2: key(
    'Calls to V2 for this partner.',
    z
      .strictObject({
        baseUrl: key('Base URL of V2 for this partner (default: upstreams.v2.baseUrl).', httpUrl.optional()),
      })
      .prefault({}),
  ),
  layout: key(
    'Layout of batch replies. flat: the layout of V2. nested: the layout for generic OData clients, such as Microsoft.OData.Client or the SAP Cloud SDK. auto: nested if the request comes from such a client, otherwise flat.',
    z.enum(['flat', 'nested', 'auto']).default('flat'),
  ),
  serviceHosts: key(
    'Hosts that absolute URLs inside a batch may have, without scheme and port (default: any).',
    z.array(hostName).min(1).max(100).optional(),
  ),
  quirks: key(
    "Deviations of the partner's client from the documented interface.",
    z
      .strictObject({
        dataEnvelope: key(
          'true: replies contain a record as {"d":…}, and a page as {"d":{"results":[…]}}.',
          z.boolean().default(false),
        ),
        msgtypeResponse: key(
          'true: parts of a batch reply have the media type application/http; msgtype=response.',
          z.boolean().default(false),
        ),
        mismatch: key(
          'What the adapter does with the records of a batch whose ids in the header and the body differ: post or drop.',
          z.enum(['post', 'drop']).default('post'),
        ),
      })
      .prefault({}),
  ),
  errorMessages: key(
    'Error texts of V2 by error code, such as ATT_VAL_2, for codes whose text differs from that of the adapter. markbridge compare learn finds these texts.',
    z.record(serviceErrorCode, z.string().min(1).max(500)).default({}),
  ),
  unmappedFields: key(
    'What the adapter does with fields that the V2 write form does not have. strict: refuses the record. pass: forwards the fields that V3 has. report: drops and counts the fields.',
    z.enum(['strict', 'pass', 'report']).default('report'),
  ),
  changeProcessName: key(
    'ChangeProcessName of posted records. null: the records have no ChangeProcessName.',
    z.string().max(255).nullable().default('Markbridge'),
  ),
  reads: key('Translation of V2 reads.', reads.prefault({})),
  compare: key('Comparison of the answers of V2 and V3.', compare.prefault({})),
  v3: key('Calls to V3 for this partner.', partnerV3.prefault({})),
})
