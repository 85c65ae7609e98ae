import { describe, expect, it } from 'vitest'

import { callsPerSecondOf } from '../../src/app/partners.ts'
import { parseConfig, Secret } from '../../src/config/index.ts'

function rates(baseUrl: string, ...settings: object[]): (number | undefined)[] {
  const partners = settings.map((v3, index) => ({
    id: `p${index}`,
    match: { pathPrefix: `/${index}` },
    clients: 'open',
    v3,
  }))
  const config = parseConfig({ upstreams: { v3: { baseUrl } }, partners })
  return config.partners.map(callsPerSecondOf(config))
}

describe('callsPerSecondOf', () => {
  it('returns the rate of the partner, or the limit of the service if the partner sets no rate (service-facts 9)', () => {
    expect(rates('https://v3.test', {}, { callsPerSecond: 2.5 }, { callsPerSecond: 'none' })).toEqual([5, 2.5, undefined]) // prettier-ignore
  })

  it.each(['127.0.0.1', '127.1.2.3:80', 'localhost:4010', 'v3.localhost', '[::1]:4010'])(
    'returns no limit for a service at the loopback address %s if the partner sets no limit',
    (host) => {
      expect(rates(`http://${host}`, {}, { callsPerSecond: 3 })).toEqual([undefined, 3])
    },
  )

  it.each(['localhost.test', '10.0.0.1', '128.0.0.1', '[::2]'])(
    'returns the default limit for a service at %s, because the address is not a loopback address',
    (host) => {
      expect(rates(`http://${host}`, {})).toEqual([5])
    },
  )

  it('returns the lowest rate of the partners that share a subscription key', () => {
    const subscriptionKey = new Secret('one')
    const other = new Secret('other')
    expect(
      rates(
        'https://v3.test',
        { subscriptionKey, callsPerSecond: 3 },
        { subscriptionKey, callsPerSecond: 'none' },
        { subscriptionKey: other },
      ),
    ).toEqual([3, 3, 5])
  })
})
