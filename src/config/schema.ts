import * as z from 'zod'

import { parseAddressRange } from '../http/address-list.ts'
import { journalSchema } from './journal-schema.ts'
import { partnerSchema } from './partner-schema.ts'
import { rolloutSchema } from './rollout-schema.ts'
import type { Tuning } from './tuning.ts'
import { bytes, httpUrl, ms, secret } from './values.ts'

/** Paths that are passed through by default: learners and attendance of service.md 1.1 and 4, lookups and metadata. */
const defaultAllow: readonly string[] = [
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
  [
    servedPattern,
    z.strictObject({
      path: servedPattern.describe('Path pattern that begins with a slash.'),
      methods: z.array(method).min(1).describe('Methods that are passed through.'),
    }),
  ],
  'must be a pattern that starts with "/", or { path: pattern, methods: [GET, …] }',
)

const listen = z.strictObject({
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('Address to listen on: loopback or an inner network, since TLS ends before the adapter.'),
  port: z.int().min(0).max(65_535).default(8080).describe('TCP port; 0 selects a free one.'),
  trustedProxies: z
    .array(
      z
        .string()
        .refine(
          (text) => parseAddressRange(text) !== undefined,
          'must be an IP address, or a range such as 10.0.0.0/8',
        ),
    )
    .default([])
    .describe(
      'Addresses or ranges (10.0.0.0/8) of proxies whose X-Forwarded-Proto and X-Forwarded-For are trusted.',
    ),
  linkSecret: secret
    .refine((own) => own.reveal() === '' || own.reveal().length >= 32, 'must have 32 characters or more')
    .optional()
    .describe("Secret that signs next links instead of the journal's; 32 characters or more."),
  metrics: z
    .enum(['loopback', 'any'])
    .default('loopback')
    .describe('Callers that may read /metrics: those on this machine (loopback), or any.'),
  // Longer than a batch has by default: a stop then cuts no batch off.
  drainMs: ms
    .default(100_000)
    .describe('Time in milliseconds that clients have to read their replies when the adapter stops.'),
})

const connectMs = ms.default(5_000).describe('Time to open a connection.')
const headersMsOf = (defaultMs: number) =>
  ms.default(defaultMs).describe('Time from the end of a request to the head of its reply.')

const upstreams = z.strictObject({
  v3: z
    .strictObject({
      baseUrl: httpUrl.describe('Address of V3, http or https, without user, query or fragment.'),
      connections: z.int().min(1).max(1024).default(32).describe('Maximum number of connections to V3.'),
      timeouts: z
        .strictObject({
          connectMs,
          headersMs: headersMsOf(20_000),
          // As long as headersMs: undici keeps one timer for both then.
          bodyMs: ms.default(20_000).describe('Time between two pieces of a reply.'),
        })
        .prefault({})
        .describe('Timeouts of calls to V3, in milliseconds.'),
    })
    .describe('The V3 service.'),
  v2: z
    .strictObject({
      baseUrl: httpUrl.describe('Address of V2, http or https, without user, query or fragment.'),
      timeouts: z
        .strictObject({
          connectMs,
          // V2 answers a whole batch at once, after its last record.
          headersMs: headersMsOf(100_000),
        })
        .prefault({})
        .describe('Timeouts of calls to V2, in milliseconds.'),
    })
    .optional()
    .describe('The V2 service: needed by the stages at which it serves.'),
})

const limits = z.strictObject({
  maxBodyBytes: bytes
    .default(33_554_432)
    .describe('Maximum bytes of a request body after decompression; a larger one gets 413.'),
  maxParts: z
    .int()
    .positive()
    .default(20_000)
    .describe('Maximum number of records, and of changesets, in one batch; more get 413.'),
  maxPartHeaderBytes: bytes
    .default(65_536)
    .describe('Maximum bytes of the headers of one part; more get 400.'),
  maxInFlightBytes: bytes
    .default(268_435_456)
    .describe('Maximum bytes of request bodies and replies in memory, shared fairly between clients.'),
})

/** The configuration file; every key has a default except the address of V3. */
export const configSchema = z.strictObject({
  listen: listen
    .prefault({})
    .describe('The address that the adapter listens on, and how it stops; a change needs a restart.'),
  upstreams: upstreams.describe('The services behind the adapter; a change needs a restart.'),
  limits: limits
    .prefault({})
    .describe('Limits of one request, and of all requests together; a reload changes them.'),
  journal: journalSchema.prefault({}).describe('The durable memory of writes; a change needs a restart.'),
  rollout: rolloutSchema
    .prefault({})
    .describe('How the stage of a partner changes; all but operators need a restart.'),
  partners: z
    .array(partnerSchema)
    .min(1)
    .default(() => [partnerSchema.parse({ id: 'default', match: { any: true } })])
    .describe('The partners; the first one whose match fits a request serves it. A reload changes them.'),
  passThrough: z
    .strictObject({
      allow: z
        .array(allowedPath)
        .default(() => [...defaultAllow])
        .describe('Path patterns with the default methods of their kind, or { path, methods }.'),
      rewriteLinks: z
        .boolean()
        .default(true)
        .describe('true: rewrite links to V3 in JSON replies to the address of the adapter.'),
    })
    .prefault({})
    .describe('Requests that are passed through to V3 unchanged; a change needs a restart.'),
})

/** A checked configuration, with what no file sets. */
export type Config = z.infer<typeof configSchema> & { readonly tuning: Tuning }

/** The keys of the file, to be shown. */
export function keysOf(config: Config): object {
  return Object.fromEntries(Object.entries(config).filter(([name]) => name !== 'tuning'))
}

/** One partner: how it is recognised, and its settings. */
export type PartnerConfig = Config['partners'][number]
