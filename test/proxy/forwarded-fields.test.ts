import { describe, expect, it } from 'vitest'

import { createAddressList } from '../../src/http/address.ts'
import {
  checkConnectionOptions,
  replaceForwarding,
  toUpstreamFields,
} from '../../src/proxy/forwarded-fields.ts'
import { incomingMessage } from '../support/incoming-message.ts'

const trusted = createAddressList(['127.0.0.1', '10.0.0.0/8', 'fd00::/8'])

function replaced(
  peer: string | undefined,
  headers: Record<string, string>,
  encrypted?: boolean,
  publicUrl?: URL,
): Record<string, unknown> {
  const request = incomingMessage({
    remoteAddress: peer,
    encrypted,
    headers: { host: 'a.test', ...headers },
  })
  replaceForwarding(request, { trustedProxies: trusted, publicUrl })
  return request.headers
}

/** Each row has a peer, the fields that the peer sends, and the `X-Forwarded-For` and the scheme that the adapter then sends. */
const rows: [peer: string | undefined, headers: Record<string, string>, hops: string, scheme: string][] = [
  ['192.0.2.1', {}, '192.0.2.1', 'http'],
  ['192.0.2.1', { 'x-forwarded-proto': 'https', 'x-forwarded-for': '127.0.0.1' }, '192.0.2.1', 'http'],
  ['10.1.2.3', { 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.7' }, '192.0.2.7, 10.1.2.3', 'https'],
  ['::ffff:10.1.2.3', { 'x-forwarded-proto': 'HTTPS' }, '10.1.2.3', 'https'],
  ['fd00::1', { 'x-forwarded-for': '2001:db8::1' }, '2001:db8::1, fd00::1', 'http'],
  // The client claims two earlier hops. Only 192.0.2.7 counts, which the trusted proxy added.
  ['127.0.0.1', { 'x-forwarded-for': '10.9.9.9, 198.51.100.1, 192.0.2.7' }, '192.0.2.7, 127.0.0.1', 'http'],
  ['127.0.0.1', { 'x-forwarded-for': '192.0.2.7, 10.0.0.2' }, '192.0.2.7, 10.0.0.2, 127.0.0.1', 'http'],
  ['127.0.0.1', { 'x-forwarded-for': 'unknown, <script>, 10.0.0.2' }, '10.0.0.2, 127.0.0.1', 'http'],
  ['127.0.0.1', { 'x-forwarded-proto': 'https, http' }, '127.0.0.1', 'http'],
  ['127.0.0.1', { 'x-forwarded-proto': 'http, https' }, '127.0.0.1', 'https'],
  ['127.0.0.1', { 'x-forwarded-proto': 'javascript' }, '127.0.0.1', 'http'],
  [undefined, { 'x-forwarded-for': '127.0.0.1' }, '', 'http'],
] // prettier-ignore
it.each(rows)(
  'replaceForwarding, for the peer %s with headers %j, returns x-forwarded-for %j and x-forwarded-proto %s',
  (peer, headers, hops, scheme) => {
    expect(replaced(peer, headers)).toEqual({
      host: 'a.test',
      'x-forwarded-for': hops,
      'x-forwarded-proto': scheme,
      'x-forwarded-host': 'a.test',
    })
  },
)

it('replaceForwarding sets x-forwarded-proto to https for an encrypted connection, unless a trusted proxy sends the scheme', () => {
  expect(replaced('192.0.2.1', {}, true)['x-forwarded-proto']).toBe('https')
  expect(replaced('192.0.2.1', {}, false)['x-forwarded-proto']).toBe('http')
  expect(replaced('127.0.0.1', { 'x-forwarded-proto': 'http' }, true)['x-forwarded-proto']).toBe('http')
})

it.each([
  ['192.0.2.1', '/markbridge', undefined],
  ['10.1.2.3', '/markbridge', '/markbridge'],
  ['10.1.2.3', '/a/b-c/', '/a/b-c'],
  ['10.1.2.3', '/claimed, /own', '/own'],
  ['10.1.2.3', 'https://other.test', undefined],
  ['10.1.2.3', '//other.test', undefined],
  ['10.1.2.3', '/a/../b', undefined],
  ['10.1.2.3', '/a"b', undefined],
  ['10.1.2.3', '/', undefined],
])('replaceForwarding, for the peer %s, turns the x-forwarded-prefix %j into %j', (peer, claimed, prefix) => {
  expect(replaced(peer, { 'x-forwarded-prefix': claimed })['x-forwarded-prefix']).toBe(prefix)
})

it('replaceForwarding takes the scheme, host and prefix from publicUrl, even if a proxy sends other values', () => {
  const said = { 'x-forwarded-proto': 'http', 'x-forwarded-prefix': '/other', 'x-forwarded-for': '192.0.2.7' }
  expect(replaced('10.1.2.3', said, false, new URL('https://marks.example:8443/pre%20fix/'))).toEqual({
    host: 'a.test',
    'x-forwarded-for': '192.0.2.7, 10.1.2.3',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'marks.example:8443',
    'x-forwarded-prefix': '/pre%20fix',
  })
})

const removed = [
  'forwarded', 'via', 'x-real-ip', 'x-client-ip', 'x-cluster-client-ip', 'true-client-ip', 'cf-connecting-ip', 'x-forwarded', 'x-forwarded-port', 'x-forwarded-prefix',
  'x-forwarded-server', 'x-forwarded-uri', 'x_forwarded_for', 'X_Forwarded_Host', 'x-original-url', 'x-original-uri', 'x-original-host', 'x-rewrite-url', 'x-http-method-override',
  'x-http-method', 'x-method-override', 'x_http_method_override', 'x-waws-unencoded-url', 'x-envoy-original-path',
] // prettier-ignore
it.each(removed)('replaceForwarding removes the field %s from requests of every peer', (name) => {
  for (const peer of ['192.0.2.1', '127.0.0.1'])
    expect(Object.keys(replaced(peer, { [name]: 'x', 'x-other': '1', accept: '*/*' }))).toEqual([
      'host',
      'x-other',
      'accept',
      'x-forwarded-for',
      'x-forwarded-proto',
      'x-forwarded-host',
    ])
})

it.each([
  ['10.0.0.1', true],
  ['::ffff:10.0.0.1', true],
  ['11.0.0.1', false],
  ['fd00::9', true],
  ['fe80::1%eth0', false],
  ['', false],
  ['10.0.0.1, 10.0.0.2', false],
])('the list of trusted proxies contains the address %j: %s', (address, held) => {
  expect(trusted.has(address)).toBe(held)
})

const credentials = { authorization: 'bearer t', subscriptionKey: 'v3-key' }

function forwarded(headers: Record<string, string>): unknown {
  const fields = toUpstreamFields(incomingMessage({ headers }), { credentials, identity: false })
  return Object.fromEntries(fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1]]] : [])))
}

describe('toUpstreamFields', () => {
  const own = {
    authorization: 'bearer t',
    'ocp-apim-subscription-key': 'v3-key',
    'x-forwarded-port': '80',
  }

  it('removes hop-by-hop fields and the fields that Connection names (RFC 9110 7.6.1)', () => {
    const hop = { connection: 'close, X-Hop , ,te', 'x-hop': '1', te: 'x', 'keep-alive': '1', upgrade: 'h2c', trailer: 'x', expect: '100-continue', 'proxy-authorization': 'x', 'proxy-connection': 'x' } // prettier-ignore
    expect(forwarded({ ...hop, accept: '*/*', cookie: 'a=1' })).toEqual({
      accept: '*/*',
      cookie: 'a=1',
      ...own,
    })
  })

  const ofGateways = {
    'client-ip': '1', 'X-ProxyUser-Ip': '1', 'X-MS-CLIENT-PRINCIPAL': '1', 'x-ms-client-principal-id': '1', 'X-MS-TOKEN-AAD-ACCESS-TOKEN': '1',
    'Front-End-Https': 'on', 'Ocp-Apim-Trace': 'true', 'x-arr-clientcert': '1', 'remote-user': '1', 'x-scheme': 'https',
    'X-Forwarded_For': '1', 'Client_IP': '1', 'X_ProxyUser_Ip': '1', 'X_MS-CLIENT_PRINCIPAL_NAME': '1', 'Front_End_Https': 'on', 'Ocp_Apim_Trace': 'true',
    'Ocp_Apim_Subscription_Key': 'other', 'Transfer_Encoding': 'chunked', 'Content_Length': '9', 'Content_Type': 'text/plain', 'X_Forwarded-Prefix': '/x',
  } // prettier-ignore

  it.each(Object.entries(ofGateways))("never sends the client's field %s to V3", (name, value) => {
    const request = incomingMessage({ remoteAddress: '10.1.2.3', headers: { host: 'a.test', [name]: value } })
    replaceForwarding(request, { trustedProxies: trusted })
    const fields = toUpstreamFields(request, { credentials, identity: false })
    expect(fields.map((text) => text.toLowerCase())).not.toContain(name.toLowerCase())
  })

  it('sends fields of gateways to V2 unchanged', () => {
    const names = [
      'client-ip',
      'x-ms-client-principal',
      'ocp-apim-trace',
      'front-end-https',
      'ocp_apim_subscription_key',
    ]
    const headers = Object.fromEntries(names.map((name) => [name, '1']))
    const fields = toUpstreamFields(incomingMessage({ headers }), { credentials: undefined, identity: false })
    expect(names.filter((name) => fields.includes(name))).toEqual(names)
  })

  it('keeps the framing fields and credentials even if Connection names them', () => {
    const kept = {
      'content-length': '5',
      'x-forwarded-for': '10.0.0.1',
    }
    const connection =
      'content-length, Transfer-Encoding, host, authorization, ocp-apim-subscription-key, X-Forwarded-For'
    expect(forwarded({ ...kept, connection, 'ocp-apim-subscription-key': 'client' })).toEqual({
      ...kept,
      ...own,
    })
  })
})

it('toUpstreamFields refuses a request whose Connection names more than 100 options', () => {
  const naming = (count: number) =>
    incomingMessage({ headers: { connection: Array(count).fill('x-a').join() } })
  expect(() => checkConnectionOptions(naming(100))).not.toThrow()
  expect(() => checkConnectionOptions(incomingMessage({}))).not.toThrow()
  expect(() => checkConnectionOptions(naming(101))).toThrow(expect.objectContaining({ code: 'ADP_HEADER' }))
})
