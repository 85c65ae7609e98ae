import { describe, expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { servedPath } from '../../src/proxy/served-path.ts'

describe('servedPath', () => {
  it.each([
    ['/V3/a?$filter=../x//y', '/V3/a'],
    ['/V3/a#/../b', '/V3/a'],
    ['/V3/a%20b', '/V3/a b'],
    ['/V3/caf%C3%A9', '/V3/caf\u00e9'],
    ['/V3/%24metadata', '/V3/$metadata'],
    ["/V3/Groups(Type=N'x.y')", "/V3/Groups(Type=N'x.y')"],
    ['/V3/100%25', '/V3/100%'],
    ['/V3/a%2541', '/V3/a%41'],
    ['/V3/...', '/V3/...'],
    ['/V3/a..b', '/V3/a..b'],
    ['/V3/', '/V3/'],
    ['/', '/'],
    ['', ''],
  ])('reads %s', (url, path) => {
    expect(servedPath(url)).toBe(path)
  })

  it.each([
    '/..', '/../', '/a/..', '/a/./b', '.', '..', '/%2E%2E/a', '/a/%2e', '/%252e%252e/a', '/a%2Fb', '/a%2fb', '/a%252Fb', '/a%25252fb', '/a%5cb', '/a%255Cb', '/a\\b',
    '//', '//a', '/a//b', '/%00', '/%0a', '/%7f', '/%2500', '/%', '/%zz', '/%c3', '/%c0%ae%c0%ae/', 'http://x/a',
  ])('refuses %s', (url) => {
    expect(() => servedPath(url)).toThrow(AdapterError)
    expect(() => servedPath(url)).toThrow(/^The path has/)
  }) // prettier-ignore
})
