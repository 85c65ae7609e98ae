import { describe, expect, it } from 'vitest'

import { parseConfig, Secret } from '../../src/config/index.ts'
import { faultsOf, upstreams } from './faults.ts'

const keyed = { id: 'acme', match: { subscriptionKeySha256: 'ab'.repeat(32) } }
const client = {
  mode: 'clientCredentials',
  tokenUrl: 'https://id.test/connect/token',
  clientId: 'c',
  clientSecret: new Secret('s'),
  scope: 'x',
}
const lent =
  'must be "subscriptionKeySha256" or "header". With "any" or "pathPrefix", every caller of the address writes with the key or token of this partner. Match by a key or a header, or allow these writes with "clients: open"'
const acme = { id: 'acme', match: { any: true } }

describe('parseConfig', () => {
  it('reports all faults at once, each with its path (product contract 6)', () => {
    expect(
      faultsOf({
        listen: { prot: 1, port: 65_536, host: '' },
        upstreams: { v3: { baseUrl: 'ftp://v3.test', timeouts: { connectMs: 0, bodyMs: 1.5 } } },
        limits: { maxPart: 1 },
        partners: [
          {
            ...acme,
            layout: 'round',
            v3: { budgetMS: 5, writeMode: 'bulk', callsPerSecond: 0, auth: { mode: 'clientCredential' } },
          },
          { ...acme, stage: 'shadowy', quirks: { mismatch: 'keep', dataEnvelope: 'yes' } },
          { id: 'a b', match: {} },
        ],
        passThrough: { allow: ['Learner/**'], rewriteLinks: 'yes' },
        colour: 'red',
      }).map((fault) => fault.split(';')[0]),
    ).toEqual([
      'listen.host: Too small: expected string to have >=1 characters',
      'listen.port: Too big: expected number to be <=65535',
      'listen.prot: is not a key of the configuration',
      'upstreams.v3.baseUrl: must be an http or https address',
      'upstreams.v3.timeouts.connectMs: Too small: expected number to be >=1',
      'upstreams.v3.timeouts.bodyMs: must be a time such as 500ms, 15s, 10m, 24h or 30d',
      'limits.maxPart: is not a key of the configuration',
      'partners[0].layout: Invalid option: expected one of "flat"|"nested"|"auto"',
      'partners[0].v3.writeMode: Invalid option: expected one of "single"|"batch"|"auto"',
      'partners[0].v3.callsPerSecond: must be a number above 0 and up to 1000, or none',
      'partners[0].v3.auth.mode: Invalid option: expected one of "passThrough"|"clientCredentials"',
      'partners[0].v3.budgetMS: is not a key of the configuration',
      'partners[1].stage: Invalid option: expected one of "legacy"|"shadow"|"canary"|"v3"|"complete"',
      'partners[1].quirks.dataEnvelope: Invalid input: expected boolean, received string',
      'partners[1].quirks.mismatch: Invalid option: expected one of "post"|"drop"',
      'partners[2].id: must be 1 to 63 letters, digits, dots, dashes or underscores',
      'partners[2].match: must have exactly one of any: true, subscriptionKeySha256, header {name, value}, pathPrefix',
      'passThrough.allow[0]: must begin with "/" and contain no wildcards except * and **',
      'passThrough.rewriteLinks: Invalid input: expected boolean, received string',
      'colour: is not a key of the configuration',
      'partners[1].id: is already the id of partners[0]',
      'partners[1].match: matches requests that already go to partners[0]',
    ])
  })

  const hints: [input: object, fault: string][] = [
    [{ upstreams, PASSTHROGH: {} }, 'PASSTHROGH: is not a key of the configuration; did you mean passThrough?'],
    [{ upstreams, partner: [] }, 'partner: is not a key of the configuration; did you mean partners?'],
    [{ upstreams: { ...upstreams, V2: {} } }, 'upstreams.V2: is not a key of the configuration; did you mean v2?'],
    [{ upstreams, partners: [{ ...acme, v3: { budgetMS: 1 } }] }, 'partners[0].v3.budgetMS: is not a key of the configuration; did you mean budgetMs?'],
    [{ upstreams, partners: [{ ...acme, v3: { auth: { mod: 1 } } }] }, 'partners[0].v3.auth.mod: is not a key of the configuration; did you mean mode?'],
    [{ upstreams, listen: { address: 'x' } }, 'listen.address: is not a key of the configuration; known keys: host, port, tls, trustedProxies, publicUrl, metrics, drainMs'],
    [{ upstreams, dashboard: {} }, 'dashboard: is not a key of the configuration; known keys: listen, upstreams, limits, journal, rollout, partners, console, passThrough'],
    [{}, 'upstreams: is required'],
    [{ upstreams: { v3: {} } }, 'upstreams.v3.baseUrl: is required'],
    [{ upstreams, partners: [{ match: { any: true } }] }, 'partners[0].id: is required'],
    [{ upstreams, partners: [] }, 'partners: Too small: expected array to have >=1 items'],
    [{ upstreams: { v3: { baseUrl: 'http://u:hush@v3.test' } } }, 'upstreams.v3.baseUrl: must have no user, password, query or fragment, and no @ in the path (write %40 instead)'],
    [{ upstreams: { v3: { baseUrl: 'http://v3.test/?a=hush' } } }, 'upstreams.v3.baseUrl: must have no user, password, query or fragment, and no @ in the path (write %40 instead)'],
    [{ upstreams, partners: [{ ...acme, v3: { budgetMs: 2_147_483_648 } }] }, 'partners[0].v3.budgetMs: Too big: expected number to be <=2147483647'],
    [{ upstreams, partners: [{ ...acme, match: { any: true, pathPrefix: '/x' } }] }, 'partners[0].match: must have exactly one of any: true, subscriptionKeySha256, header {name, value}, pathPrefix'],
    [{ upstreams, partners: [{ ...acme, match: { subscriptionKeySha256: 'hush' } }] }, 'partners[0].match.subscriptionKeySha256: must be 64 hexadecimal digits, or a list of such hashes'],
    [{ upstreams, partners: [{ ...keyed, v3: { auth: { mode: 'clientCredentials', clientId: 'c', clientSecret: new Secret('s'), scope: 'x' } } }] }, 'partners[0].v3.auth.tokenUrl: is required for mode: clientCredentials'],
    [{ upstreams, partners: [{ ...keyed, v3: { auth: { ...client, clientSecret: 'hush' } } }] }, 'partners[0].v3.auth.clientSecret: must be { env: NAME } or { file: path }, never the value itself'],
    [{ upstreams, partners: [{ ...keyed, v3: { auth: { ...client, tokenUrl: 'http://id.test/connect/token' } } }] }, 'partners[0].v3.auth.tokenUrl: must be https, because the adapter sends a secret to this address'],
    [{ upstreams, partners: [{ ...keyed, v3: { auth: { organisation: 'o' } } }] }, 'partners[0].v3.auth.organisation: applies only to mode: clientCredentials'],
    [{ upstreams, passThrough: { allow: ['/V3/{a,b}'] } }, 'passThrough.allow[0]: must begin with "/" and contain no wildcards except * and **'],
    [{ upstreams, passThrough: { allow: [{ path: '/x', methods: ['TRACE'] }] } }, 'passThrough.allow[0]: must be a pattern that starts with "/", or { path: pattern, methods: [GET, …] }'],
    [{ upstreams, partners: [{ ...acme, v3: { auth: client } }] }, `partners[0].match: ${lent}`],
    [{ upstreams, partners: [{ id: 'a', match: { pathPrefix: '/a' }, v3: { subscriptionKey: new Secret('s') } }] }, `partners[0].match: ${lent}`],
    [{ upstreams, partners: [{ ...keyed, v3: { subscriptionKey: new Secret('kéyłe') } }] }, 'partners[0].v3.subscriptionKey: contains a character that no header field can carry. Check how the value was copied'],
    [{ upstreams, partners: [{ ...acme, clients: 'all' }] }, 'partners[0].clients: must be open, or left out'],
  ] // prettier-ignore
  it.each(hints)('rejects %j with the fault %s', (input, fault) => {
    expect(faultsOf(input)).toEqual([fault])
  })

  it.each([undefined, null, 5, 'hush', [], true])('refuses %j in place of a configuration', (input) => {
    expect(faultsOf(input).length).toBe(1)
  })

  it('never repeats a value of the configuration in a fault', () => {
    const hush = { toString: () => 'hush' }
    const values: unknown[] = ['hush', ['hush'], { hush: 'hush' }, hush]
    for (const value of values) {
      const inputs = [
        { listen: { host: value, port: value }, upstreams: { v3: { baseUrl: value, connections: value } }, limits: { maxParts: value } },
        { upstreams, partners: [{ id: value, match: value, stage: value, layout: value, quirks: { mismatch: value }, changeProcessName: [value], v3: { subscriptionKey: value, bodyProfile: value, auth: value } }] },
        { upstreams, passThrough: { allow: [value], rewriteLinks: value } },
      ] // prettier-ignore
      for (const input of inputs) {
        const faults = faultsOf(input).filter((fault) => !/[.\]]hush: is not a key/.test(fault))
        expect(faults.join('\n')).not.toContain('hush')
      }
    }
  })

  it('accepts every kind of match for a partner, and wraps header values as secrets', () => {
    const matches = [
      { subscriptionKeySha256: ['AB'.repeat(32), 'cd'.repeat(32)] },
      { subscriptionKeySha256: 'EF'.repeat(32) },
      { header: { name: 'X-Partner', value: 'acme' } },
      { pathPrefix: '/acme' },
      { any: true },
    ]
    const partners = matches.map((match, index) => ({
      id: `p${index}`,
      match,
      clients: 'open',
      v3: { subscriptionKey: new Secret('k') },
    }))
    const config = parseConfig({ upstreams, partners })
    expect(config.partners.map(({ match }) => match)).toEqual([
      { subscriptionKeySha256: ['ab'.repeat(32), 'cd'.repeat(32)] },
      { subscriptionKeySha256: ['ef'.repeat(32)] },
      { header: { name: 'X-Partner', value: new Secret('acme') } },
      ...matches.slice(3),
    ])
    expect(config.partners[0]?.v3).toMatchObject({
      concurrency: 16,
      budgetMs: 90_000,
      bodyProfile: 'full',
      writeMode: 'single',
    })
  })

  it('accepts code letters and code ids as unmarked codes, and uses the letter "-" by default', () => {
    const codes = ['-', 'X01', '#W', 'AC00C159-62ce-44b8-ace6-c75caf7505e6']
    const { partners } = parseConfig({
      upstreams,
      partners: [acme, { ...keyed, id: 'b', reads: { unmarkedCodes: codes } }].reverse(),
    })
    expect(partners.map(({ reads }) => reads.unmarkedCodes)).toEqual([codes, ['-']])
  })

  it.each(['', 'a b', 'ac00c159-62ce-44b8-ace6-c75caf7505e', 'much too long'])(
    'refuses %j as an unmarked code',
    (code) => {
      expect(faultsOf({ upstreams, partners: [{ ...acme, reads: { unmarkedCodes: [code] } }] })).toEqual([
        'partners[0].reads.unmarkedCodes[0]: must be an attendance code such as "-", or the guid of an attendance code',
      ])
    },
  )

  it.each([
    ['Service.EXAMPLE', 'service.example'],
    ['10.0.0.7', '10.0.0.7'],
    ['[2001:DB8::7]', '[2001:db8::7]'],
  ])('accepts %s as a host of absolute URLs in a batch', (host, name) => {
    const { partners } = parseConfig({ upstreams, partners: [{ ...acme, serviceHosts: [host] }] })
    expect(partners[0]?.serviceHosts).toEqual([name])
  })

  it.each(['https://a.example', 'a.example:8080', 'a.example/x', 'user@a.example', '2001:db8::7', 'a b', ''])(
    'refuses %j as a host of absolute URLs in a batch',
    (host) => {
      expect(faultsOf({ upstreams, partners: [{ ...acme, serviceHosts: [host] }] })).toEqual([
        'partners[0].serviceHosts[0]: must be a host name without scheme, port or path, such as service.example',
      ])
    },
  )

  it('reads sizes and times with a unit, and reads plain numbers as bytes and milliseconds', () => {
    const read = (time: unknown, size: unknown) => {
      const config = parseConfig({ upstreams, listen: { drainMs: time }, limits: { maxBodyBytes: size } })
      return [config.listen.drainMs, config.limits.maxBodyBytes]
    }
    expect(read('1.5s', '64KiB')).toEqual([1_500, 65_536])
    expect(read('24h', '1GB')).toEqual([86_400_000, 1_000_000_000])
    expect(read(250, 1_024)).toEqual([250, 1_024])
    expect(parseConfig({ upstreams, journal: { keepRecordsMs: '400d' } }).journal.keepRecordsMs).toBe(
      34_560_000_000,
    )
  })

  it.each([
    ['15 s', 'must be a time such as 500ms, 15s, 10m, 24h or 30d'],
    ['15S', 'must be a time such as 500ms, 15s, 10m, 24h or 30d'],
    ['25d', 'Too big: expected number to be <=2147483647'],
    ['0s', 'Too small: expected number to be >=1'],
  ])('refuses the time %j', (time, message) => {
    expect(faultsOf({ upstreams, listen: { drainMs: time } })).toEqual([`listen.drainMs: ${message}`])
  })

  it('lists the faults of unreadable secrets before the faults of the schema', () => {
    const earlier = [{ code: 'secret', message: 'is empty', target: 'x' }]
    expect(() => parseConfig({ upstreams }, earlier)).toThrow('The configuration has 1 fault:\n  x: is empty')
    expect(() => parseConfig({}, earlier)).toThrow(
      'The configuration has 2 faults:\n  x: is empty\n  upstreams: is required',
    )
  })
})
