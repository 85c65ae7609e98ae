import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

import { describe, expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createRateLimits } from '../../src/upstream/index.ts'
import { systemClock } from '../../src/clock.ts'
import { createRegistry } from '../../src/partners/registry.ts'
import {
  type Authorisation,
  authoriseWithout,
  createAuthorise,
  createRecogniseClient,
  type Partner,
} from '../../src/partners/partner.ts'
import { incomingMessage } from '../support/incoming-message.ts'
import { partner } from './partner.ts'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

function request(url: string, headers: Record<string, string> = {}): IncomingMessage {
  const own = { 'ocp-apim-subscription-key': 'key', authorization: 'bearer t', ...headers }
  return incomingMessage({ url, headers: own })
}

const rateLimits = createRateLimits(systemClock)

async function authorise(partners: readonly Partner[], asking: IncomingMessage): Promise<Authorisation> {
  const client = createRecogniseClient(createRegistry(partners).find)(asking)
  return createAuthorise(rateLimits)(asking, client)
}

async function whoIs(partners: readonly Partner[], asking: IncomingMessage): Promise<string> {
  try {
    return (await authorise(partners, asking)).partner.id
  } catch (error) {
    if (error instanceof AdapterError) return error.code
    throw error
  }
}

describe('createAuthorise', () => {
  const partners = [
    partner('hash', { subscriptionKeySha256: [sha256('old-key'), sha256('hash-key')] }),
    partner('header', { header: { name: 'X-Partner', value: 'one' } }),
    partner('path', { pathPrefix: '/acme' }),
    partner('slash', { pathPrefix: '/other/' }),
  ]
  const rows: [url: string, headers: Record<string, string>, who: string][] = [
    ['/', { 'ocp-apim-subscription-key': 'hash-key' }, 'hash'],
    ['/acme', { 'ocp-apim-subscription-key': 'hash-key' }, 'hash'],
    ['/acme', { 'ocp-apim-subscription-key': 'old-key' }, 'hash'],
    ['/', { 'x-partner': 'one' }, 'header'],
    ['/', { 'x-partner': 'ONE' }, 'ADP_SUBSCRIPTION_KEY'],
    ['/acme/V2', {}, 'path'],
    ['/acme?x', {}, 'path'],
    ['/acme', {}, 'path'],
    ['/acme-two/V2', {}, 'ADP_SUBSCRIPTION_KEY'],
    ['/Acme/V2', {}, 'path'],
    ['/ACME', {}, 'path'],
    ['/%61cme/V2', {}, 'path'],
    ['http://any.test/acme/V2', {}, 'path'],
    ['http://any.test?/acme', {}, 'ADP_SUBSCRIPTION_KEY'],
    ['/other/V2', {}, 'slash'],
    ['/otherwise', {}, 'ADP_SUBSCRIPTION_KEY'],
    ['/acme', { 'ocp-apim-subscription-key': '' }, 'ADP_SUBSCRIPTION_KEY'],
    ['/acme', { authorization: 'bearer' }, 'ADP_TOKEN'],
    ['/acme', { authorization: 'Basic x' }, 'ADP_TOKEN'],
    ['/acme', { authorization: 'BEARER x' }, 'path'],
  ]
  it.each(rows)(
    'assigns a request to %s with headers %j to a partner, or throws an error code: %s',
    async (url, headers, who) => {
      expect(await whoIs(partners, request(url, headers))).toBe(who)
    },
  )

  it('uses the token of the outer request, and its subscription key unless the partner has a V3 key (batch-wire F24)', async () => {
    const [own, mapped] = await Promise.all(
      [undefined, () => 'v3-key'].map((key) => authorise([partner('p', { any: true }, key)], request('/'))),
    )
    expect(own?.credentials).toEqual({ authorization: 'bearer t', subscriptionKey: 'key' })
    expect(mapped?.credentials).toEqual({ authorization: 'bearer t', subscriptionKey: 'v3-key' })
  })
})

describe('authoriseWithout', () => {
  const shown = { authorization: 'bearer shown', subscriptionKey: 'shown-key' }
  const tokens = { token: () => Promise.resolve('own'), renew: () => Promise.resolve('newer') }
  const own = (key: string | undefined, withTokens: boolean): Partner => ({
    ...partner('acme', { any: true }, key === undefined ? undefined : () => key),
    ...(withTokens ? { tokens } : {}),
  })
  const rows: [what: string, partner: Partner, client: typeof shown | undefined, credentials: object | string][] = [
    ['the credentials that a client sent', own(undefined, false), shown, shown],
    ["the partner's key with the client's token", own('v3-key', false), shown, { ...shown, subscriptionKey: 'v3-key' }],
    ["only the partner's own key and token", own('v3-key', true), undefined, { authorization: 'Bearer own', subscriptionKey: 'v3-key' }],
    ['no credentials if neither the partner nor the client has a key', own(undefined, true), undefined, 'credentials'],
    ['no credentials if neither the partner nor the client has a token', own('v3-key', false), undefined, 'credentials'],
  ] // prettier-ignore
  it.each(rows)('uses %s', async (_what, who, client, expected) => {
    const authorised = authoriseWithout(who, rateLimits, client)
    expect(typeof authorised === 'string' ? authorised : (await authorised).credentials).toEqual(expected)
  })
})
