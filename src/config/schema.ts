import * as z from 'zod'

import { parseAddressRange } from '../http/address.ts'
import { journalSchema } from './journal-schema.ts'
import { partnerSchema } from './partner-schema.ts'
import { Secret } from './secret.ts'
import { bytes, httpUrl, key, ms, timeWithin } from './values.ts'

const DAY_MS = 86_400_000

/** An operator name contains no colon, because `os:<user>` names a user of the operating system who is not in the file. */
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

/** The hash is never printed, because a weak token could be guessed from its hash. */
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

/** The rollout section: who may change the stage of a partner, and how. */
const rolloutSchema = z.strictObject({
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
  evidence: key('The evidence that rollout advise needs before it says ready.', evidence.prefault({})),
})

const address = z
  .string()
  .refine(
    (text) => parseAddressRange(text) !== undefined,
    'must be an IP address, or a range such as 10.0.0.0/8',
  )

const hostName = z
  .string()
  .regex(/^(?:[\w.-]+|\[[0-9a-f:.]+\])$/i, 'must be a name or an address, without a port')
  .transform((name) => name.toLowerCase())

const consoleSchema = z.strictObject({
  port: key('TCP port of the console; 0 selects a free one.', z.int().min(0).max(65_535)),
  host: key(
    'Address to listen on; beyond loopback rollout.operators has to name who may enter.',
    z.string().min(1).default('127.0.0.1'),
  ),
  hosts: key(
    'Further names under which browsers reach the console, such as the one of a proxy; requests for other names are refused.',
    z.array(hostName).default([]),
  ),
  runs: key(
    'Folder with the runs of comparison that the console shows (--dir of compare run).',
    z.string().min(1).default('./data/compare'),
  ),
  trustedProxies: key(
    'Addresses or ranges (10.0.0.0/8) of proxies in front whose X-Forwarded-Proto and identity header are trusted.',
    z.array(address).default([]),
  ),
  identity: key(
    'Trusted proxies authenticate operators and name them in a header.',
    z
      .strictObject({
        header: key(
          'Header with the name of an operator of rollout.operators.',
          z.string().regex(/^[A-Za-z0-9-]{1,64}$/, 'must be the name of a header'),
        ),
      })
      .optional(),
  ),
})

/** The paths that are passed through by default: learners and attendance (service.md 1.1 and 4), lookups and metadata. */
const defaultAllow: readonly string[] = [
  '/**/Learner/**',
  '/**/V1',
  '/**/V1/**',
  '/**/V3',
  '/**/V3/**',
  '/**/V2/LearnerRegistations',
  '/**/Lookup/**',
  '/**/$metadata',
]

/**
 * The methods that can be listed. TRACE is excluded because it echoes a request with its credentials, and CONNECT because it opens a
 * tunnel.
 */
const method = z.enum(['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'])
/**
 * A path pattern with the wildcards `*` and `**`. Characters of other pattern languages are refused, because they would be matched
 * literally.
 */
const servedPattern = z
  .string()
  .max(512)
  .regex(/^\/(?:(?![@+*]\()[^?[\]{}!|\\])*$/, 'must begin with "/" and have no wildcards but * and **')
const allowedPath = z.union(
  [
    servedPattern,
    z.strictObject({
      path: key(
        'Path pattern that begins with a slash. * stands for a part of a segment, ** for any number of segments.',
        servedPattern,
      ),
      methods: key('Methods that are passed through.', z.array(method).min(1)),
    }),
  ],
  'must be a pattern that starts with "/", or { path: pattern, methods: [GET, …] }',
)

const listen = z.strictObject({
  host: key(
    'Address to listen on: loopback or an inner network, since TLS ends before the adapter.',
    z.string().min(1).default('127.0.0.1'),
  ),
  port: key('TCP port; 0 selects a free one.', z.int().min(0).max(65_535).default(8080)),
  trustedProxies: key(
    'Addresses or ranges (10.0.0.0/8) of proxies whose X-Forwarded-Proto, -Prefix and -For are trusted.',
    z
      .array(
        z
          .string()
          .refine(
            (text) => parseAddressRange(text) !== undefined,
            'must be an IP address, or a range such as 10.0.0.0/8',
          ),
      )
      .default([]),
  ),
  publicUrl: key(
    'Address that clients call, with the path that a proxy takes off; links and contexts begin with it.',
    httpUrl.optional(),
  ),
  metrics: key(
    'Callers that may read /metrics: those on this machine (loopback), or any.',
    z.enum(['loopback', 'any']).default('loopback'),
  ),
  // The default is longer than the default time budget of a batch, so that stopping does not cut a batch off.
  drainMs: key('Time that clients have to read their replies when the adapter stops.', ms.prefault('100s')),
})

const connectMs = key('Time to open a connection.', ms.prefault('5s'))
const headersMsOf = (time: string) =>
  key('Time from the end of a request to the head of its reply.', ms.prefault(time))

const upstreams = z.strictObject({
  v3: key(
    'The V3 service.',
    z.strictObject({
      baseUrl: key('Address of V3, http or https, without user, query or fragment.', httpUrl),
      connections: key('Maximum number of connections to V3.', z.int().min(1).max(1024).default(32)),
      timeouts: key(
        'Timeouts of calls to V3.',
        z
          .strictObject({
            connectMs,
            headersMs: headersMsOf('20s'),
            // The default equals that of headersMs, because undici then needs only one timer for both.
            bodyMs: key('Time between two pieces of a reply.', ms.prefault('20s')),
          })
          .prefault({}),
      ),
    }),
  ),
  v2: key(
    'The V2 service: needed by the stages at which it serves.',
    z
      .strictObject({
        baseUrl: key('Address of V2, http or https, without user, query or fragment.', httpUrl),
        timeouts: key(
          'Timeouts of calls to V2.',
          z
            .strictObject({
              connectMs,
              // The default is long because V2 answers a batch only after its last record.
              headersMs: headersMsOf('100s'),
            })
            .prefault({}),
        ),
      })
      .optional(),
  ),
})

const limits = z.strictObject({
  maxBodyBytes: key(
    'Maximum size of a request body after decompression; a larger one gets 413.',
    bytes.prefault('32MiB'),
  ),
  maxParts: key(
    'Maximum number of records, and of changesets, in one batch; more get 413.',
    z.int().positive().default(20_000),
  ),
  maxInFlightBytes: key(
    'Maximum size of request bodies and replies in memory, shared fairly between clients.',
    bytes.prefault('256MiB'),
  ),
})

/** The schema of the configuration file. Every key has a default except for the address of V3. */
export const configSchema = z.strictObject({
  listen: key(
    'The address that the adapter listens on, and how it stops; a change needs a restart.',
    listen.prefault({}),
  ),
  upstreams: key('The services behind the adapter; a change needs a restart.', upstreams),
  limits: key(
    'Limits of one request, and of all requests together; a reload changes them.',
    limits.prefault({}),
  ),
  journal: key('The durable memory of writes; a change needs a restart.', journalSchema.prefault({})),
  rollout: key(
    'How the stage of a partner changes; all but operators need a restart.',
    rolloutSchema.prefault({}),
  ),
  partners: key(
    'The partners; the first one whose match fits a request serves it. A reload changes them.',
    z
      .array(partnerSchema)
      .min(1)
      .default(() => [partnerSchema.parse({ id: 'default', match: { any: true } })]),
  ),
  console: key(
    'The web console of operators (default: none); a change needs a restart.',
    consoleSchema.optional(),
  ),
  passThrough: key(
    'Requests that are passed through to V3 unchanged; a change needs a restart.',
    z
      .strictObject({
        allow: key(
          'Path patterns with the default methods of their kind, or { path, methods }; $batch only where a pattern ends in it.',
          z.array(allowedPath).default(() => [...defaultAllow]),
        ),
        rewriteLinks: key(
          'true: rewrite links to V3 in JSON replies to the address of the adapter.',
          z.boolean().default(true),
        ),
      })
      .prefault({}),
  ),
})

export type Config = z.infer<typeof configSchema>

export type ConsoleConfig = NonNullable<Config['console']>

export type PartnerConfig = Config['partners'][number]

/** The JSON Schema members that the schema of the configuration uses. */
export interface JsonSchemaNode {
  $schema?: string
  title?: string
  description?: string
  format?: string
  type?: string
  pattern?: string
  properties?: Record<string, JsonSchemaNode>
  required?: readonly string[]
  additionalProperties?: boolean
  items?: JsonSchemaNode
  anyOf?: JsonSchemaNode[]
  default?: unknown
}

const secretSource = (name: 'env' | 'file', description: string): JsonSchemaNode => ({
  type: 'object',
  properties: { [name]: { type: 'string', description } },
  required: [name],
  additionalProperties: false,
})

/** The forms in which the file refers to a secret. Loading replaces them before validation. */
const secretForms: readonly JsonSchemaNode[] = [
  secretSource('env', 'Name of the environment variable that holds the secret.'),
  secretSource('file', 'Path of the file that holds the secret.'),
]

/**
 * Returns the JSON Schema of the configuration file, with the meaning and the default of every key. Its version is draft-07, which the
 * YAML language server and most editors read. The schema covers single values. Only `config check` finds conflicts between values, such
 * as a partner whose requests an earlier partner receives.
 */
export function createConfigJsonSchema(): JsonSchemaNode {
  const schema = z.toJSONSchema(configSchema, {
    io: 'input',
    target: 'draft-7',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      // Secret is the only custom type of the configuration.
      if (zodSchema._zod.def.type === 'custom')
        Object.assign(jsonSchema, { anyOf: structuredClone(secretForms) })
      // Validators reject zod's name for this format. The pattern beside it has the same meaning.
      if (jsonSchema.format === 'starts_with') delete jsonSchema.format
    },
  }) as JsonSchemaNode
  return { ...schema, title: 'Configuration of Markbridge' }
}
