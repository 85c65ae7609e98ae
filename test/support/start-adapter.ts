import { Pool } from 'undici'
import { onTestFinished } from 'vitest'

import { type App, type AppOverrides, type Config, createApp, parseConfig } from '../../src/index.ts'
import { createLogger } from '../../src/observability/logger.ts'
import type { OnEnd } from './end-of-file.ts'
import { type Answer, startUpstream, type Upstream } from './scripted-upstream.ts'

/** A reply, read whole. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

export interface Adapter {
  readonly app: App
  readonly url: string
  readonly port: number
  /** Everything that was logged so far, one JSON object a line. */
  readonly log: string[]
  /** The log as objects, without time, level and name. */
  events(): Record<string, unknown>[]
  request(
    method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    options?: { headers?: Readonly<Record<string, string>>; body?: string | Buffer },
  ): Promise<Reply>
}

/** Credentials of a client; the token and the key are recognisable in what must not hold them. */
export const clientHeaders = {
  'Ocp-Apim-Subscription-Key': 'client-key',
  Authorization: 'bearer client-token',
} as const

/** Members of the configuration besides `listen` and the address of V3. */
export interface AdapterSettings {
  readonly v3?: object
  /** V2, where there is one. */
  readonly v2?: object
  readonly partners?: readonly object[]
  readonly [section: string]: unknown
}

/** The configuration of such an adapter. */
export function adapterConfig(v3Url: string, settings: AdapterSettings = {}): Config {
  const { v3 = {}, v2, partners = [{ id: 'default', match: { any: true } }], ...sections } = settings
  return parseConfig({
    listen: { port: 0 },
    journal: { url: 'none' },
    upstreams: { v3: { baseUrl: v3Url, ...v3 }, ...(v2 === undefined ? {} : { v2 }) },
    partners: partners.map((partner) => ({
      ...partner,
      v3: { readBackAfterMs: [], ...('v3' in partner && typeof partner.v3 === 'object' ? partner.v3 : {}) },
    })),
    ...sections,
  })
}

/**
 * The adapter in front of the V3 service at `v3Url`, on a port of its own, closed at the end of the test or at that of the file. Where a partner does
 * not say otherwise, lost outcomes are not looked for: most upstreams of tests know POST alone.
 */
export async function startAdapter(
  v3Url: string,
  settings: AdapterSettings = {},
  overrides: AppOverrides = {},
  onEnd: OnEnd = onTestFinished,
): Promise<Adapter> {
  const config = adapterConfig(v3Url, settings)
  const log: string[] = []
  const logger = createLogger('trace', { write: (line) => log.push(line) })
  // A comparison that waits for a processor which other tests use would take its test beyond its time.
  const app = createApp(config, { logger, backgroundNice: 0, ...overrides })
  const { url, port } = await app.listen()
  const pool = new Pool(url, { connections: 8 })
  onEnd(async () => {
    await pool.destroy()
    await app.close()
  })
  return {
    app,
    url,
    port,
    log,
    events: () =>
      log.map((line) => {
        const entries = Object.entries(JSON.parse(line) as object)
        return Object.fromEntries(entries.filter(([name]) => !['time', 'level', 'name'].includes(name)))
      }),
    request: async (method, path, { headers = {}, body } = {}) => {
      const reply = await pool.request({
        method,
        path,
        headers: { ...clientHeaders, ...headers },
        body: body ?? null,
      })
      return { status: reply.statusCode, headers: reply.headers, text: await reply.body.text() }
    },
  }
}

/** The adapter in front of a V3 service that answers so; by default it takes every record. */
export async function startWithV3(
  answer?: Answer,
  settings?: AdapterSettings,
  overrides?: AppOverrides,
): Promise<{ upstream: Upstream; adapter: Adapter }> {
  const upstream = await startUpstream(answer)
  return { upstream, adapter: await startAdapter(upstream.url, settings, overrides) }
}

/** Status and code of a request that was refused as a whole. */
export function codeOf({ status, text }: Pick<Reply, 'status' | 'text'>): string {
  const { error } = JSON.parse(text) as { readonly error?: { readonly code: string } }
  return `${status} ${error?.code}`
}

/** One partner that takes every key, with these choices. */
export function onePartner(choices: object): { partners: object[] } {
  return { partners: [{ id: 'acme', match: { any: true }, clients: 'open', ...choices }] }
}
