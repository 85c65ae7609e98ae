import * as z from 'zod'

import { compareSchema } from './compare-schema.ts'
import { journalSchema } from './journal-schema.ts'
import { recordSchema } from './record-schema.ts'
import { parseAddressRange } from '../http/address-list.ts'
import { isLoopback } from '../http/loopback.ts'
import { readTarget } from '../http/request-target.ts'
import { rolloutSchema } from './rollout-schema.ts'
import { Secret } from './secret.ts'

/** Node's timers fire at once for more. */
const MAX_TIMER_MS = 2_147_483_647
const ms = z.int().positive().max(MAX_TIMER_MS)
const bytes = z.int().positive()
const httpUrl = z
  .string()
  .meta({ pattern: '^[Hh][Tt][Tt][Pp][Ss]?:' })
  .refine(
    (text) => /^https?:$/.test(URL.canParse(text) ? new URL(text).protocol : ''),
    'must be an http or https address',
  )
  .transform((text) => new URL(text))
  .refine(
    (url) => url.username === '' && url.password === '' && url.search === '' && url.hash === '',
    'must have no user, password, query or fragment',
  )

/** Paths that are passed through by default: learners and attendance of service.md 1.1 and 4, lookups and metadata. */
export const defaultAllow: readonly string[] = [
  '/**/Learner/**',
  '/**/V1/**',
  '/**/V3/**',
  '/**/V2/LearnerRegistations',
  '/**/Lookup/**',
  '/**/$metadata',
]

/** TRACE echoes a request with the credentials in it, and CONNECT opens a tunnel: neither can be listed. */
const method = z.enum(['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'])
const servedPattern = z.string().startsWith('/')
const allowedPath = z.union(
  [servedPattern, z.strictObject({ path: servedPattern, methods: z.array(method).min(1) })],
  'must be a pattern that starts with "/", or { path: pattern, methods: [GET, …] }',
)

/** A secret is never written into the file: loading resolves `{ env: NAME }` or `{ file: path }` to one. */
const secret = z.instanceof(Secret, {
  error: 'must be { env: NAME } or { file: path }, never the value itself',
})

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
const headerValue = z
  .union([z.string().min(1), secret], 'must be a text, { env: NAME } or { file: path }')
  .transform((value) => (typeof value === 'string' ? new Secret(value) : value))

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
    z.strictObject({ any: z.literal(true) }),
    z.strictObject({ subscriptionKeySha256: keyHashes }),
    z.strictObject({ header: z.strictObject({ name: z.string().min(1), value: headerValue }) }),
    z.strictObject({ pathPrefix: z.string().startsWith('/').refine(isPlainPath, unreachablePrefix) }),
  ],
  'needs exactly one of any: true, subscriptionKeySha256, header {name, value}, pathPrefix',
)

/** Of the service: codes of the adapter begin ADP_. */
const serviceErrorCode = z.string().regex(/^(?!ADP_)[A-Z][A-Z0-9_]{1,39}$/)

const partnerV3 = z.strictObject({
  writeMode: z.enum(['single', 'batch', 'auto']).default('single'),
  batchFormat: z.enum(['multipart', 'json']).default('multipart'),
  maxBatchRecords: z.int().min(1).max(1_000).default(100),
  concurrency: z.int().min(1).max(1024).default(16),
  budgetMs: ms.default(90_000),
  callsPerSecond: z
    .union(
      [z.number().meta({ exclusiveMinimum: 0, maximum: 1_000 }), z.literal('none')],
      'must be a number above 0 and up to 1000, or none',
    )
    .refine(
      (rate) => rate === 'none' || (rate > 0 && rate <= 1_000),
      'must be a number above 0 and up to 1000, or none',
    )
    .optional(),
  refuseOverBudget: z.boolean().default(false),
  readBackAfterMs: z.array(ms).max(10).default([250, 750, 2_000]),
  bodyProfile: z.enum(['full', 'minimal']).default('full'),
  attendeeType: z.string().default('Learner.Identifier'),
  eventType: z.string().default('Attendance.AttendanceSession'),
  codeType: z.string().default('Attendance.Lookup'),
  subscriptionKey: secret.optional(),
  auth: z
    .strictObject({
      mode: z.enum(['passThrough', 'clientCredentials']).default('passThrough'),
      tokenUrl: httpUrl
        .refine(
          (url) => url.protocol === 'https:' || isLoopback(url.hostname),
          'must be https: a secret is sent there',
        )
        .optional(),
      clientId: z
        .union([z.string().min(1), secret], 'must be a text, { env: NAME } or { file: path }')
        .optional(),
      clientSecret: secret.optional(),
      scope: z.string().min(1).optional(),
      organisation: z.string().min(1).optional(),
    })
    .prefault({}),
})

/** Codes have up to three characters (service-facts 7); a guid that lost a digit must not pass for one. */
const codeOrGuid = z
  .string()
  .regex(
    /^(?:\S{1,10}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$/,
    'must be an attendance code such as "-", or the guid of one',
  )

const partnerReads = z.strictObject({
  wideRange: z.enum(['split', 'refuse']).default('split'),
  needsRecordedBy: z.boolean().default(true),
  unmarkedCodes: z
    .array(codeOrGuid)
    .max(100)
    .default(() => ['-']),
  filterUpstream: z.boolean().default(true),
  histories: z.boolean().default(false),
})

/** A host name as URLs have it, so that it can be compared: lower case, no port, IPv6 in brackets. */
const hostName = z
  .string()
  .refine(
    (text) => /^(?:[^/?#@:\\\s]+|\[[0-9a-f:.]+\])$/i.test(text) && URL.canParse(`http://${text}`),
    'must be a host name without scheme, port and path, such as service.example',
  )
  .transform((text) => new URL(`http://${text}`).hostname)

const stages = ['legacy', 'shadow', 'canary', 'v3', 'complete'] as const

/** Schools as a token or a header names them. */
const units = z
  .array(z.string().min(1).max(255))
  .max(10_000)
  .default(() => [])

const canary = z.strictObject({
  percent: z.number().min(0).max(100).default(0),
  unit: z.literal('school', 'must be school').default('school'),
  claim: z.string().min(1).max(255).default('organisation'),
  header: z.string().min(1).max(255).optional(),
  always: units,
  never: units,
})

const percent = z.number().min(0).max(100)

const partner = z.strictObject({
  id: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
      'must be 1 to 63 letters, digits, dots, dashes or underscores',
    ),
  match,
  clients: z.literal('open', 'must be open, or left out').optional(),
  identity: z
    .strictObject({
      claims: z.array(z.string().min(1).max(255)).max(16).default(['iss', 'client_id', 'organisation']),
    })
    .prefault({}),
  stage: z.enum(stages).default('v3'),
  stageOverride: z.enum(stages).optional(),
  canary: canary.prefault({}),
  check: z.strictObject({ v2: percent.default(0) }).prefault({}),
  v2: z
    .strictObject({ baseUrl: httpUrl.optional(), replay: z.enum(['stored', 'relay']).default('stored') })
    .prefault({}),
  layout: z.enum(['flat', 'nested', 'auto']).default('flat'),
  serviceHosts: z.array(hostName).min(1).max(100).optional(),
  quirks: z
    .strictObject({
      dataEnvelope: z.boolean().default(false),
      msgtypeResponse: z.boolean().default(false),
      mismatch: z.enum(['post', 'drop']).default('post'),
    })
    .prefault({}),
  errorMessages: z.record(serviceErrorCode, z.string().min(1).max(500)).default({}),
  unmappedFields: z.enum(['strict', 'pass', 'report']).default('report'),
  changeProcessName: z.string().max(255).nullable().default('Markbridge'),
  reads: partnerReads.prefault({}),
  compare: compareSchema.prefault({}),
  record: recordSchema.optional(),
  v3: partnerV3.prefault({}),
})

/** The configuration file; every key has a default except the address of V3. */
export const configSchema = z.strictObject({
  listen: z
    .strictObject({
      host: z.string().min(1).default('127.0.0.1'),
      port: z.int().min(0).max(65_535).default(8080),
      trustedProxies: z
        .array(
          z
            .string()
            .refine(
              (text) => parseAddressRange(text) !== undefined,
              'must be an IP address, or a range such as 10.0.0.0/8',
            ),
        )
        .default([]),
      linkSecret: secret
        .refine((own) => own.reveal() === '' || own.reveal().length >= 32, 'must have 32 characters or more')
        .optional(),
      metrics: z.enum(['loopback', 'any']).default('loopback'),
      // Longer than a batch has by default: a stop then cuts no batch off.
      drainMs: ms.default(100_000),
    })
    .prefault({}),
  upstreams: z.strictObject({
    v3: z.strictObject({
      baseUrl: httpUrl,
      connections: z.int().min(1).max(1024).default(32),
      timeouts: z
        .strictObject({
          connectMs: ms.default(5_000),
          acquireMs: ms.default(10_000),
          headersMs: ms.default(20_000),
          // As long as headersMs: undici keeps one timer for both then.
          bodyMs: ms.default(20_000),
        })
        .prefault({}),
    }),
    v2: z
      .strictObject({
        baseUrl: httpUrl,
        connections: z.int().min(1).max(1024).default(64),
        timeouts: z
          .strictObject({
            connectMs: ms.default(5_000),
            acquireMs: ms.default(10_000),
            // V2 answers a whole batch at once, after its last record.
            headersMs: ms.default(100_000),
            bodyMs: ms.default(20_000),
          })
          .prefault({}),
      })
      .optional(),
  }),
  limits: z
    .strictObject({
      maxBodyBytes: bytes.default(33_554_432),
      maxParts: z.int().positive().default(20_000),
      maxPartHeaderBytes: bytes.default(65_536),
      maxPartBytes: bytes.default(1_048_576),
      maxInFlightBytes: bytes.default(268_435_456),
      slowClients: z
        .strictObject({
          minBytesPerSecond: bytes.default(512),
          headersMs: ms.default(20_000),
          uploadMs: ms.default(10_000),
          replyMs: ms.default(30_000),
        })
        .prefault({}),
    })
    .prefault({}),
  journal: journalSchema.prefault({}),
  rollout: rolloutSchema.prefault({}),
  partners: z
    .array(partner)
    .min(1)
    .default(() => [partner.parse({ id: 'default', match: { any: true } })]),
  passThrough: z
    .strictObject({
      allow: z.array(allowedPath).default(() => [...defaultAllow]),
      rewriteLinks: z.boolean().default(true),
    })
    .prefault({}),
})

/** A checked configuration. */
export type Config = z.infer<typeof configSchema>
/** One partner: how it is recognised, and its settings. */
export type PartnerConfig = Config['partners'][number]
