import { describe, expect, it } from 'vitest'

import { createSelfSigned } from '../../src/cli/self-signed.ts'
import { parseConfig, planReload, Secret } from '../../src/config/index.ts'
import { faultsOf, upstreams } from './faults.ts'

const own = createSelfSigned(Date.now())
const other = createSelfSigned(Date.now())
const tlsOf = ({ cert, key }: typeof own) => ({ cert: new Secret(cert), key: new Secret(key) })
const targetsOf = (tls: object): string[] =>
  faultsOf({ upstreams, listen: { tls } }).map((fault) => fault.replace(/:.*/, ''))

describe('listen.tls', () => {
  it('accepts a certificate and its key', () => {
    expect(targetsOf(tlsOf(own))).toEqual([])
  })

  it.each([
    ['the key of another certificate', { ...tlsOf(own), key: new Secret(other.key) }, 'listen.tls.key'],
    [
      'a key in the place of the certificate',
      { ...tlsOf(own), cert: new Secret(own.key) },
      'listen.tls.cert',
    ],
    ['a certificate in the place of the key', { ...tlsOf(own), key: new Secret(own.cert) }, 'listen.tls.key'],
    ['a plain text', { ...tlsOf(own), key: 'key.pem' }, 'listen.tls.key'],
    ['a certificate without a key', { cert: new Secret(own.cert) }, 'listen.tls.key'],
  ])('refuses %s', (_name, tls, target) => {
    expect(targetsOf(tls)).toEqual([target])
  })

  it('is replaced on a reload', () => {
    const running = parseConfig({
      upstreams,
      listen: { tls: tlsOf(own) },
      console: { port: 0, tls: tlsOf(own) },
    })
    const next = parseConfig({
      upstreams,
      listen: { tls: tlsOf(other) },
      console: { port: 0, tls: tlsOf(other) },
    })
    const { config, changes } = planReload(running, next)
    expect(changes.needsRestart).toEqual([])
    expect([config.listen.tls, config.console?.tls]).toEqual([next.listen.tls, next.console?.tls])
    expect(config.listen.tls?.cert.reveal()).toBe(other.cert)
  })
})
