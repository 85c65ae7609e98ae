import { Pool } from 'undici'
import { onTestFinished } from 'vitest'

import { type App, type AppOverrides, type Config, createApp, parseConfig } from '../../src/index.ts'
import { createLogger } from '../../src/observability/logger.ts'
import type { OnEnd } from './end-of-file.ts'
import { type Answer, startUpstream, type Upstream } from './scripted-upstream.ts'

/** A reply whose body was read completely. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

export interface Adapter {
  readonly app: App
  readonly url: string
  readonly port: number
  /** Everything that was logged so far, one JSON object per line. */
  readonly log: string[]
  /** Returns the log as objects without time, level and name. */
  events(): Record<string, unknown>[]
  request(
    method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    options?: { headers?: Readonly<Record<string, string>>; body?: string | Buffer },
  ): Promise<Reply>
}

/** The credentials of a client. The token and the key are easy to recognise in outputs that must not contain them. */
export const clientHeaders = {
  'Ocp-Apim-Subscription-Key': 'client-key',
  Authorization: 'bearer client-token',
} as const

/** Members of the configuration besides `listen` and the URL of V3. */
export interface AdapterSettings {
  readonly v3?: object
  /** The settings of V2, if there is a V2. */
  readonly v2?: object
  readonly partners?: readonly object[]
  readonly [section: string]: unknown
}

/** Builds the configuration of an adapter in front of the V3 service at `v3Url`. */
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
 * Starts the adapter in front of the V3 service at `v3Url` on its own port. The adapter is closed at the end of the test or of the file.
 * Unless a partner says otherwise, lost outcomes are not read back, because most test upstreams support POST only.
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
  // Background work gets the usual priority (`backgroundNice: 0`). At a low priority it would starve while other tests run, and the test
  // would time out.
  const app = createApp(config, { logger, backgroundNice: 0, ...overrides })
  const { url, port } = await app.listen()
  const ca = config.listen.tls?.cert.reveal()
  const pool = new Pool(url, { connections: 8, ...(ca !== undefined && { connect: { ca } }) })
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

/** Starts the adapter in front of a V3 service with this answer. By default the service accepts every record. */
export async function startWithV3(
  answer?: Answer,
  settings?: AdapterSettings,
  overrides?: AppOverrides,
): Promise<{ upstream: Upstream; adapter: Adapter }> {
  const upstream = await startUpstream(answer)
  return { upstream, adapter: await startAdapter(upstream.url, settings, overrides) }
}

/** Returns the status and code of a request that was rejected as a whole. */
export function codeOf({ status, text }: Pick<Reply, 'status' | 'text'>): string {
  const { error } = JSON.parse(text) as { readonly error?: { readonly code: string } }
  return `${status} ${error?.code}`
}

/** Returns one partner that matches every key, with these settings. */
export function onePartner(choices: object): { partners: object[] } {
  return { partners: [{ id: 'acme', match: { any: true }, clients: 'open', ...choices }] }
}
