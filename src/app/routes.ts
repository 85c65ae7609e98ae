import { createSecureContext, getCACertificates } from 'node:tls'

import { type Config, type Environment, isProxyAddress, readEnvironment } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { createAddressList, isLoopback, parseAddressRange } from '../http/address.ts'
import type { Events } from '../observability/events.ts'
import { createConnectionTo, type UpstreamRoute } from '../upstream/index.ts'

type Upstream = Pick<NonNullable<Config['upstreams']['v2']>, 'proxy' | 'tls'>
type ProxyVariables = Environment['proxies']

/** An outbound proxy, and the key or the environment variable that names the proxy. */
interface NamedProxy {
  readonly url: URL
  readonly source: string
}

/** Creates the routes to V3 and V2, each with its proxy and certificates. Token requests use the route to V3. */
export function createRoutes(
  { upstreams }: Pick<Config, 'upstreams'>,
  events?: Pick<Events, 'proxyFailed'>,
): { readonly v3: UpstreamRoute; readonly v2: UpstreamRoute } {
  const { proxies } = readEnvironment()
  const routeOf = (key: 'v3' | 'v2', upstream: Upstream): UpstreamRoute => ({
    proxyFor: (origin) => findProxy(origin, `upstreams.${key}.proxy`, upstream, proxies)?.url,
    secureContext: upstream.tls && toSecureContext(upstream.tls),
    onProxyFailure: events && (({ proxy, code }) => events.proxyFailed({ upstream: key, proxy, code })),
  })
  const v3 = routeOf('v3', upstreams.v3)
  return { v3, v2: upstreams.v2 === undefined ? v3 : routeOf('v2', upstreams.v2) }
}

/** Creates the function with which Node.js opens connections to `url`, with the proxy and the certificates of V3 or V2. */
export function createConnectionFor(
  config: Pick<Config, 'upstreams'>,
  side: 'v2' | 'v3',
  url: URL,
  connectMs: number,
): ReturnType<typeof createConnectionTo> {
  return createConnectionTo(url, connectMs, createRoutes(config)[side])
}

/** An address behind the adapter, and the upstream whose proxy and certificates its connections use. */
export interface UpstreamAddress {
  readonly name: string
  readonly url: URL
  readonly side: 'v2' | 'v3'
}

/** Returns the distinct addresses of V3, of V2 and of the token endpoints. */
export function addressesOf({
  upstreams,
  partners,
}: Pick<Config, 'upstreams' | 'partners'>): readonly UpstreamAddress[] {
  const all = [
    { name: 'address of V3', url: upstreams.v3.baseUrl, side: 'v3' },
    { name: 'address of V2', url: upstreams.v2?.baseUrl, side: 'v2' },
    ...partners.flatMap(({ id, v2, v3 }) => [
      { name: `address of V2 of ${id}`, url: v2.baseUrl, side: 'v2' } as const,
      { name: `address of the tokens of ${id}`, url: v3.auth.tokenUrl, side: 'v3' } as const,
    ]),
  ] as const
  const known = all.flatMap((one) => (one.url === undefined ? [] : [{ ...one, url: one.url }]))
  return known.filter(({ url }, at) => known.findIndex((one) => one.url.href === url.href) === at)
}

/** Returns the proxies that the configuration and the environment name for these addresses, without credentials. */
export function describeProxies(config: Pick<Config, 'upstreams' | 'partners'>): readonly string[] {
  const all = addressesOf(config).flatMap(({ url, side }) => describeProxy(config, url, side) ?? [])
  return [...new Set(all)]
}

/** Returns a text such as `http://proxy.example:3128 (HTTPS_PROXY)`, or `undefined` if connections to the URL are direct. */
export function describeProxy(
  { upstreams: { v3, v2 } }: Pick<Config, 'upstreams'>,
  url: URL,
  side: 'v2' | 'v3',
): string | undefined {
  const [key, upstream] = side === 'v2' && v2 !== undefined ? (['v2', v2] as const) : (['v3', v3] as const)
  const found = findProxy(url, `upstreams.${key}.proxy`, upstream, readEnvironment().proxies)
  return found && `${found.url.origin} (${found.source})`
}

/**
 * Returns the proxy for an origin: the configured proxy, or else the proxy of the environment. The environment applies neither to loopback
 * addresses nor to the hosts in NO_PROXY. Throws `ADP_CONFIGURATION` if the variable contains no address of an http proxy.
 */
export function findProxy(
  origin: URL,
  key: string,
  { proxy }: Pick<Upstream, 'proxy'>,
  variables: ProxyVariables,
): NamedProxy | undefined {
  if (proxy !== undefined) return { url: new URL(proxy.reveal()), source: key }
  const [source, value] =
    origin.protocol === 'https:'
      ? (['HTTPS_PROXY', variables.https] as const)
      : (['HTTP_PROXY', variables.http] as const)
  if (value === undefined || isLoopback(origin.hostname) || isExempt(origin, variables.no ?? ''))
    return undefined
  const text = value.includes('://') ? value : `http://${value}`
  if (isProxyAddress(text)) return { url: new URL(text), source }
  throw new AdapterError(
    'ADP_CONFIGURATION',
    `The environment variable ${source} contains no address of an http proxy. Nothing was sent. Set it to http://<host>:<port>, with a percent-encoded user and password if needed.`,
  )
}

/** Returns true if NO_PROXY lists the host of an origin: by its name, a parent domain, an address, a range, or `*`. A port is optional. */
function isExempt({ hostname, port, protocol }: URL, list: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === '*') return true
    if (parseAddressRange(entry) !== undefined) return createAddressList([entry]).has(host)
    const [, name = '', only] = /^(?:\*?\.)?(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
    if (only !== undefined && only !== (port === '' ? (protocol === 'https:' ? '443' : '80') : port))
      return false
    return name !== '' && (host === name || host.endsWith(`.${name}`))
  })
}

/** Creates the TLS context for an upstream. Called once, because reading all authorities takes milliseconds. */
function toSecureContext({ ca, cert, key }: NonNullable<Upstream['tls']>) {
  return createSecureContext({
    ...(ca && { ca: [...getCACertificates('default'), ca.reveal()] }),
    ...(cert && key && { cert: cert.reveal(), key: key.reveal() }),
  })
}
