import { describe, expect, it } from 'vitest'

import { findProxy } from '../../src/app/routes.ts'
import { Secret } from '../../src/config/index.ts'

const variables = { https: 'http://secure.test:3128', http: 'plain.test:3128', no: undefined }

const sourceFor = (url: string, no?: string, proxy?: string): string | undefined => {
  const configured = proxy === undefined ? {} : { proxy: new Secret(proxy) }
  const found = findProxy(new URL(url), 'upstreams.v3.proxy', configured, { ...variables, no })
  return found && `${found.source} ${found.url.host}`
}

describe('findProxy', () => {
  it.each([
    ['https://v3.test', 'HTTPS_PROXY secure.test:3128'],
    ['http://v3.test', 'HTTP_PROXY plain.test:3128'],
    ['https://localhost:4010', undefined],
    ['http://127.0.0.1:4010', undefined],
    ['http://[::1]:4010', undefined],
  ])('returns, for the service at %s, the proxy %s of the environment variables', (url, expected) => {
    expect(sourceFor(url)).toBe(expected)
  })

  it('prefers the configured proxy, also for loopback addresses and the hosts in NO_PROXY', () => {
    for (const url of ['https://v3.test', 'http://127.0.0.1:4010'])
      expect(sourceFor(url, '*', 'http://own.test:8888')).toBe('upstreams.v3.proxy own.test:8888')
  })

  it.each([
    ['v3.school.test', true],
    ['school.test', true],
    ['.school.test', true],
    ['*.school.test', true],
    ['other.test, SCHOOL.TEST', true],
    ['other.test school.test', true],
    ['*', true],
    ['school.test:443', true],
    ['school.test:8443', false],
    ['ool.test', false],
    ['v3.school.test.example', false],
    ['', false],
  ])('bypasses the proxy for https://v3.school.test if NO_PROXY is %j: %s', (list, isExempt) => {
    expect(sourceFor('https://v3.school.test', list) === undefined).toBe(isExempt)
  })

  it.each([
    ['10.1.2.3', true],
    ['10.0.0.0/8', true],
    ['10.2.0.0/16', false],
  ])('bypasses the proxy for https://10.1.2.3 if NO_PROXY is %j: %s', (list, isExempt) => {
    expect(sourceFor('https://10.1.2.3', list) === undefined).toBe(isExempt)
  })

  it.each([
    ['an unsupported scheme', 'socks5://jane:hush@proxy.test'],
    ['a password with a malformed escape', 'http://jane:hush%zz@proxy.test'],
  ])('rejects a proxy variable whose address has %s, and quotes no part of the address', (_what, https) => {
    const find = () => findProxy(new URL('https://v3.test'), 'key', {}, { ...variables, https })
    expect(find).toThrow(
      expect.objectContaining({
        code: 'ADP_CONFIGURATION',
        message: expect.not.stringMatching(/jane|hush/) as unknown,
      }),
    )
  })
})
