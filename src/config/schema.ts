import * as z from 'zod'

import { parseAddressRange } from '../http/address.ts'
import { journalSchema } from './journal-schema.ts'
import { partnerSchema } from './partner-schema.ts'
import { Secret } from './secret.ts'
import { listenerTlsSchema, proxySchema, upstreamTlsSchema } from './tls-schema.ts'
import { bytes, httpUrl, key, ms, timeWithin } from './values.ts'

const DAY_MS = 86_400_000

/** The name of an operator. The name contains no colon, because the audit trail calls a user of the operating system `os:<user>`. */
const operatorName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$/,
    'must be 1 to 63 letters, digits, dots, dashes, underscores or @',
  )
  .refine(
    (name) => !/^(?:guard|markbridge)$/i.test(name),
    'is reserved: Markbridge uses this name for its own entries in the audit trail',
  )

/** The hash of an operator's token. The hash is never printed, because a weak token could be guessed from its hash. */
const tokenSha256 = z
  .string()
  .meta({ pattern: '^[0-9a-fA-F]{64}$' })
  .refine(
    (text) => /^[0-9a-f]{64}$/i.test(text),
    'must be 64 hexadecimal digits: the SHA-256 of the token, never the token itself',
  )
  .transform((text) => new Secret(text.toLowerCase()))

const operator = z.strictObject({
  name: key('Unique name of the operator, in the audit trail.', operatorName),
  tokenSha256: key("SHA-256 hash of the operator's token in hexadecimal. It is never printed.", tokenSha256),
  role: key(
    'What the operator may do. operator: changes stages, and approves changes that others propose. approver: approves changes, and moves partners back. viewer: only reads.',
    z.enum(['operator', 'approver', 'viewer']),
  ),
  partners: key(
    'Ids of the partners that the operator may see and change (default: all).',
    z.array(z.string().min(1)).min(1).optional(),
  ),
  reveal: key(
    'true: the console may show this operator the values of records. The operator gives a reason each time, which the audit trail stores.',
    z.boolean().default(false),
  ),
})

const evidence = z.strictObject({
  limit: key(
    'Maximum share of learner-days with a difference. A learner-day is one learner on one day. The upper confidence bound of the share must be below this limit. At 0.005, 598 learner-days without a difference are enough.',
    z.number().min(0.0001).max(0.5).default(0.005),
  ),
  confidence: key(
    'Confidence level of the upper bound that limit applies to.',
    z.number().min(0.5).max(0.9999).default(0.95),
  ),
  schoolShare: key(
    'Maximum share of the counted learner-days that may come from one school. Raise it for a partner with fewer than five schools.',
    z.number().min(0.01).max(1).default(0.2),
  ),
  days: key(
    'Minimum number of days with compared requests, and minimum number of days that the partner has been at its stage.',
    z.int().min(0).max(90).default(5),
  ),
})

const rolloutSchema = z.strictObject({
  approval: key(
    'Number of people that a step forward needs. two: a second operator must approve the step, and a partner without a stored stage begins at legacy.',
    z.enum(['one', 'two']).default('one'),
  ),
  operators: key(
    'The operators who may change stages. Each operator has a token. Without this list, every user of the operating system who can open the journal may change stages.',
    z.array(operator).max(200).prefault([]),
  ),
  resendWindowMs: key(
    'Time during which a client may resend a batch that V2 served without an entry in the journal. A step to canary is refused until this time has passed. Raise it if your clients resend batches for longer.',
    timeWithin(1_000, DAY_MS).prefault('15m'),
  ),
  evidence: key(
    'The evidence that markbridge rollout advise requires before its verdict is ready.',
    evidence.prefault({}),
  ),
})

const address = z
  .string()
  .refine(
    (text) => parseAddressRange(text) !== undefined,
    'must be an IP address, or a range such as 10.0.0.0/8',
  )

const hostName = z
  .string()
  .regex(/^(?:[\w.-]+|\[[0-9a-f:.]+\])$/i, 'must be a host name or an IP address, without a port')
  .transform((name) => name.toLowerCase())

const consoleSchema = z.strictObject({
  port: key('TCP port of the console. 0 selects a free port.', z.int().min(0).max(65_535)),
  host: key(
    'Address to listen on. An address other than loopback requires rollout.operators.',
    z.string().min(1).default('127.0.0.1'),
  ),
  tls: key(
    'Certificate for browsers. With it, the console accepts only https (TLS 1.2 or 1.3). A new certificate or key takes effect on a reload.',
    listenerTlsSchema.optional(),
  ),
  hosts: key(
    'Additional host names under which browsers reach the console, such as the name of a proxy. Requests for other host names are refused.',
    z.array(hostName).default([]),
  ),
  runs: key(
    'Folder of the comparison runs that the console shows. It is the --dir of markbridge compare run.',
    z.string().min(1).default('./data/compare'),
  ),
  trustedProxies: key(
    'Addresses or ranges (10.0.0.0/8) of reverse proxies. The console trusts the X-Forwarded-Proto header and the identity header of these proxies.',
    z.array(address).default([]),
  ),
  identity: key(
    'Settings for trusted proxies that authenticate operators and send the name of the operator in a header.',
    z
      .strictObject({
        header: key(
          'Header that contains the name of the operator. The name must be in rollout.operators.',
          z
            .string()
            .regex(/^[A-Za-z0-9-]{1,64}$/, 'must be a header name of 1 to 64 letters, digits and dashes'),
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

/** The methods that can be passed through. TRACE would echo a request with its credentials, and CONNECT would open a tunnel. */
const method = z.enum(['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'])
/** A path pattern with `*` and `**`. Other special characters are refused, because they would be matched literally. */
const servedPattern = z
  .string()
  .max(512)
  .regex(/^\/(?:(?![@+*]\()[^?[\]{}!|\\])*$/, 'must begin with "/" and contain no wildcards except * and **')
const allowedPath = z.union(
  [
    servedPattern,
    z.strictObject({
      path: key(
        'Path pattern that begins with a slash. * matches any text within one segment, and ** matches any number of segments.',
        servedPattern,
      ),
      methods: key('Methods that the adapter passes through for this path.', z.array(method).min(1)),
    }),
  ],
  'must be a pattern that starts with "/", or { path: pattern, methods: [GET, …] }',
)

const listen = z.strictObject({
  host: key(
    'Address to listen on. Beyond loopback, set tls, or use an internal network behind a proxy that terminates TLS.',
    z.string().min(1).default('127.0.0.1'),
  ),
  port: key('TCP port to listen on. 0 selects a free port.', z.int().min(0).max(65_535).default(8080)),
  tls: key(
    'Certificate for clients. With it, the adapter accepts only https (TLS 1.2 or 1.3). A new certificate or key takes effect on a reload.',
    listenerTlsSchema.optional(),
  ),
  trustedProxies: key(
    'Addresses or ranges (10.0.0.0/8) of reverse proxies. The adapter trusts the headers X-Forwarded-Proto, X-Forwarded-Prefix and X-Forwarded-For of these proxies.',
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
    'Base URL that clients call, including any path prefix that a proxy removes. Links and context URLs in replies begin with this URL.',
    httpUrl.optional(),
  ),
  metrics: key(
    'Callers that may read /metrics. loopback: only callers on the same machine. any: all callers.',
    z.enum(['loopback', 'any']).default('loopback'),
  ),
  // The default is longer than the default of `budgetMs`, so that a batch in progress can end before the adapter stops.
  drainMs: key(
    'Maximum time that the adapter waits for clients to read their replies when it stops.',
    ms.prefault('100s'),
  ),
})

const connectMs = key('Timeout for opening a connection.', ms.prefault('5s'))
const headersMsOf = (time: string) =>
  key('Timeout from the end of a request to the head of its reply.', ms.prefault(time))

const proxy = key(
  'Address of an HTTP proxy for connections to this service, such as http://proxy.example:3128. It may contain a user and a password. Default: HTTPS_PROXY or HTTP_PROXY of the environment, except for loopback addresses and the hosts in NO_PROXY.',
  proxySchema.optional(),
)
const tls = key('Certificates for https to this service.', upstreamTlsSchema.optional())

const upstreams = z.strictObject({
  v3: key(
    'The V3 interface of the service. Tokens are requested over the same proxy and with the same certificates.',
    z.strictObject({
      baseUrl: key('Base URL of V3: http or https, without user, query or fragment.', httpUrl),
      proxy,
      tls,
      connections: key(
        'Maximum number of connections to V3 for writes. Reads and passed-through requests each have as many connections of their own.',
        z.int().min(1).max(1024).default(32),
      ),
      timeouts: key(
        'Timeouts of calls to V3.',
        z
          .strictObject({
            connectMs,
            headersMs: headersMsOf('20s'),
            // The default equals the default of `headersMs`, because undici needs only one timer for two equal timeouts.
            bodyMs: key(
              'Timeout between two pieces of a reply body. It also holds for replies of V2. For passed-through replies headersMs is the timeout between two pieces.',
              ms.prefault('20s'),
            ),
          })
          .prefault({}),
      ),
    }),
  ),
  v2: key(
    'The V2 interface of the service. The stages legacy, shadow and canary require it.',
    z
      .strictObject({
        baseUrl: key('Base URL of V2: http or https, without user, query or fragment.', httpUrl),
        proxy,
        tls,
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
    'Maximum size of a request body after decompression. A larger body is refused with 413.',
    bytes.prefault('32MiB'),
  ),
  maxParts: key(
    'Maximum number of records in one batch, and maximum number of changesets. A larger batch is refused with 413.',
    z.int().positive().default(20_000),
  ),
  maxInFlightBytes: key(
    'Maximum total size of request bodies and replies in memory. The adapter shares this memory fairly between clients.',
    bytes.prefault('256MiB'),
  ),
})

/** The schema of the configuration file. Every key has a default except for the address of V3. */
export const configSchema = z.strictObject({
  listen: key(
    'The address that the adapter listens on, and how the adapter stops. A new certificate takes effect on a reload, any other change after a restart.',
    listen.prefault({}),
  ),
  upstreams: key('The services behind the adapter. A change takes effect after a restart.', upstreams),
  limits: key(
    'Limits of one request, and of all requests together. A change takes effect on a reload.',
    limits.prefault({}),
  ),
  journal: key(
    'The database in which the adapter stores each record before it posts the record. A change takes effect after a restart.',
    journalSchema.prefault({}),
  ),
  rollout: key(
    'Who may change the stage of a partner, and what a change requires. A change of operators takes effect on a reload, any other change after a restart.',
    rolloutSchema.prefault({}),
  ),
  partners: key(
    'The partners. Each request belongs to the first partner whose match it fits. A change takes effect on a reload.',
    z
      .array(partnerSchema)
      .min(1)
      .default(() => [partnerSchema.parse({ id: 'default', match: { any: true } })]),
  ),
  console: key(
    'The web console for operators. Without this section there is no console. A new certificate takes effect on a reload, any other change after a restart.',
    consoleSchema.optional(),
  ),
  passThrough: key(
    'Requests that the adapter passes through to V3 unchanged. A change takes effect after a restart.',
    z
      .strictObject({
        allow: key(
          'Path patterns of these requests. A pattern alone allows the default methods of its path, which are GET, HEAD and OPTIONS for most paths (docs/pass-through.md); { path, methods } allows the listed methods. A $batch is passed through only if a pattern ends in $batch.',
          z.array(allowedPath).default(() => [...defaultAllow]),
        ),
        rewriteLinks: key(
          'true: replaces the address of V3 in the links of JSON replies by the address of the adapter.',
          z.boolean().default(true),
        ),
      })
      .prefault({}),
  ),
})

export type Config = z.infer<typeof configSchema>

export type ConsoleConfig = NonNullable<Config['console']>

export type PartnerConfig = Config['partners'][number]

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

/** The forms in which the file refers to a secret. The loader replaces each form with the secret before validation. */
const secretForms: readonly JsonSchemaNode[] = [
  secretSource('env', 'Name of the environment variable that contains the secret.'),
  secretSource('file', 'Path of the file that contains the secret.'),
]

/**
 * Returns the JSON Schema of the configuration file, with the meaning and the default of every key. The version of JSON Schema is draft-07,
 * which the YAML language server and most editors read. The schema covers single values. Only `config check` finds conflicts between
 * values, such as a partner whose requests all go to an earlier partner.
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
      // Validators reject the format `starts_with`, which zod adds. The pattern beside the format has the same meaning.
      if (jsonSchema.format === 'starts_with') delete jsonSchema.format
    },
  }) as JsonSchemaNode
  return { ...schema, title: 'Configuration of Markbridge' }
}
