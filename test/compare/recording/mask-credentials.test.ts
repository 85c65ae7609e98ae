import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { maskExchange, maskTarget, maskTokens } from '../../../src/compare/recording/mask-credentials.ts'
import { markedExchange } from './exchanges.ts'

/** Matches the same tokens as the code, with a simple expression that takes quadratic time. */
const plainForm = /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|\b(?:bearer|basic)[ \t]+[\w.~+/-]{16,}=*/gi

it('maskTarget keeps OData options and masks all other options', () => {
  for (const target of [
    '/V2/LearnerRegistations?expand=Enrolments,UPNHistory',
    '/a?%24filter=x%20eq%201&$top=3',
  ])
    expect(maskTarget(target)).toBe(target)
  expect(maskTarget('//user:secret@v2.example/a?b=c')).toBe('//xxxxxxxxxxx@v2.example/a?b=x')
  expect(maskTarget('https://a:b@v2.example/a?key=c&$top=3&expanded=d')).toBe(
    'https://xxx@v2.example/a?key=x&$top=3&expanded=x',
  )
})

it.each([
  ['$search=x;subscription-key=secret', '$search=x;subscription-key=xxxxxx'],
  ['$search=x%3Bsubscription-key%3Dsecret&$top=1', '$search=x%3Bsubscription-key%3Dxxxxxx&$top=1'],
  ['$filter=a%20eq%201%26key=secret', '$filter=a%20eq%201%26key=xxxxxx'],
  ['$filter=subscription-key=secret', '$filter=subscription-key=xxxxxx'],
  ['$search="subscription-key:secret"', '$search="subscription-key:xxxxxx"'],
  ['$skiptoken=x;key=secret', '$skiptoken=x;key=xxxxxx'],
  // The last rows have OData options inside an option, and the end of an encoded token. Neither is a credential.
  ['$expand=A($filter=b eq 1;$top=2;$levels=3)', '$expand=A($filter=b eq 1;$top=2;$levels=3)'],
  ['$skiptoken=YWJj==', '$skiptoken=YWJj=='],
])('maskTarget masks only credentials inside the OData option %s', (query, masked) => {
  expect(maskTarget(`/a?${query}`)).toBe(`/a?${masked}`)
})

it('maskTarget masks credentials inside an option in linear time', () => {
  for (const part of ['(', ';', '; ', '(a', 'a=', ';a=b', '%3B', 'subscription-key:', ' '])
    expect(() => maskTarget(`/a?$search=${part.repeat(100_000)}`)).not.toThrow()
})

describe('maskExchange for the headers of a part', () => {
  const fold = [
    'Authorization: Bearer secret',
    'Authorization:\r\n Bearer secret',
    'Authorization: Bearer\r\n \t\r\n secret',
    'Authorization\r\n : Bearer secret',
    ' Authorization: Bearer secret',
    'Accept: a\r\n \r\nOcp-Apim-Subscription-Key: secret',
    'Accept: a\r\n Authorization: Bearer secret',
    'Accept: a\r\n ;subscription-key=secret',
    'Accept: a;subscription-key=secret',
    'Content-Type: application/json;\r\n x="secret"',
  ]
  it.each(fold)('masks a credential in the header lines %j of a MIME head and of an HTTP head', (lines) => {
    for (const [mime, http] of [
      [`${lines}\r\n`, ''],
      ['', `${lines}\r\n`],
    ]) {
      const body = `--b\r\nContent-Type: application/http\r\n${mime}\r\nPOST /x HTTP/1.1\r\n${http}Prefer: return=minimal\r\n\r\n{"a":1}\r\n--b--\r\n`
      const fields = ['Content-Type', 'multipart/mixed; boundary=b']
      const exchange = markedExchange({})
      const { request } = maskExchange({
        ...exchange,
        request: { ...exchange.request, fields, body: Buffer.from(body) },
      })
      expect(request.body.toString()).not.toContain('secret')
      expect(request.body.toString().length).toBe(body.length)
      expect(request.body.toString()).toContain('Prefer: return=minimal\r\n\r\n{"a":1}\r\n--b--')
    }
  })
})

describe('maskTokens for links in a text', () => {
  it.each([
    // The rows have links in JSON, in XML, and in JSON with escaped slashes and characters.
    [
      '"@odata.nextLink":"https://v3/x?subscription-key=abc&$skiptoken=9"',
      '"@odata.nextLink":"https://v3/x?subscription-key=xxx&$skiptoken=9"',
    ],
    [
      '"next":"AttendanceRecords?$top=1&sig=a%2Bb","Comment":"c"',
      '"next":"AttendanceRecords?$top=1&sig=xxxxx","Comment":"c"',
    ],
    [
      '<id>https://v2/x?key=abc&amp;expand=y&amp;code=de</id>',
      '<id>https://v2/x?key=xxx&amp;expand=y&amp;code=xx</id>',
    ],
    ['"https:\\/\\/v3\\/x?key=a\\/b\\u0026$top=1"', '"https:\\/\\/v3\\/x?key=xxxx\\u0026$top=1"'],
    ['"a?key=q\\"b=c"', '"a?key=x\\"b=c"'],
    ['see https://user:secret@v3.example/x', 'see https://xxxxxxxxxxx@v3.example/x'],
    ['//user:secret@v3.example/', '//xxxxxxxxxxx@v3.example/'],
    ['"https:\\/\\/user:secret@v3\\/x"', '"https:\\/\\/xxxxxxxxxxx@v3\\/x"'],
  ])('masks the credentials in %s', (text, masked) => {
    expect(maskTokens(text)).toBe(masked)
  })

  it('leaves text without links unchanged', () => {
    for (const text of ['late? yes = no', 'a // b@c', 'who? me@x', '{"a":"b & c=d"}', 'https://v3/x@y'])
      expect(maskTokens(text)).toBe(text)
  })

  it('scans a text for links in linear time', () => {
    for (const part of ['?', '//', '?a', '//a', '?a&', '//a@', '?a=b&c', '\\/'])
      expect(() => maskTokens(part.repeat(100_000))).not.toThrow()
  })
})

describe('maskTokens for tokens in a text', () => {
  it('masks a token anywhere in a text, and nothing else', () => {
    const [token, mask] = ['eyJhbGciOiJ.eyJzdWIiOjE.c2ln-_x', 'x'.repeat(31)]
    for (const [before, after] of [
      ['', ''],
      ['"id": "', '"'],
      ['token-', '. More'],
      ['eyJ.', ''],
      ['notes.', ' and.so.on'],
      ['neyJabcdefghi-', ''],
    ])
      expect(maskTokens(`${before}${token}${after}`)).toBe(`${before}${mask}${after}`)
    for (const text of [
      'eyJhbGciOi.eyJzdWIiOjE',
      'heyJhbGciOi.eyJzdWI.c2ln',
      'eyJ-a.attendance.x',
      'basic maths',
    ])
      expect(maskTokens(text)).toBe(text)
    expect(maskTokens('A Bearer abcdefghijklmnop== b')).toBe(`A ${'x'.repeat(6)} ${'x'.repeat(18)} b`)
  })

  it('masks exactly the tokens that a simple regular expression finds', () => {
    const piece = fc.constantFrom(
      'eyJ',
      'EYJ',
      'abcdefgh',
      'a',
      '-',
      '.',
      ' ',
      '=',
      'bearer ',
      'basic\t',
      'é',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const text = pieces.join('')
        const expected = text.replaceAll(plainForm, (token) => token.replaceAll(/\S/g, 'x'))
        expect(maskTokens(text)).toBe(expected)
      }),
      { numRuns: 20_000 },
    )
  })

  it('scans a text for tokens in linear time', () => {
    const long = 'eyJ-'.repeat(65_536)
    for (const text of [
      long,
      `${long}.${long}`,
      'a'.repeat(262_144),
      'a-'.repeat(131_072),
      'bearer\t'.repeat(40_000),
    ]) {
      const beganMs = performance.now()
      expect(maskTokens(text) === text).toBe(true)
      expect(performance.now() - beganMs).toBeLessThan(1_000)
    }
  })
})

describe('maskExchange for a multipart body', () => {
  const masked = (text: string): string => {
    const exchange = markedExchange({ body: Buffer.from(text), contentType: 'multipart/mixed; boundary=b' })
    return maskExchange(exchange).request.body.toString()
  }

  it.each([
    ['a head without a blank line', ['--b', '', 'POST /a HTTP/1.1', '--b', '', 'POST /b HTTP/1.1', 'X-Key: SECRET', '', '{}', '--b--']],
    ['a boundary that no header names', ['--other', '', 'POST /a HTTP/1.1', '', '{}', '--other', '', 'POST /b HTTP/1.1', 'X-Key: SECRET', '', '{}', '--other--']],
    ['content that is not JSON', ['--b', '', 'POST /a HTTP/1.1', '', 'GET /c HTTP/1.1', '', 'x', '--b', 'X-Key: SECRET', '', '--b--']],
    ['targets with spaces', ['--b', '', 'POST /My School/a?key=SECRET SECRET HTTP/1.1', 'X-Key: SECRET', '', '{}', '--b--']],
    ['empty content', ['--b', '', 'POST /a HTTP/1.1', '', '--b', 'X-Key: SECRET', '', 'POST /b HTTP/1.1', '', '{}', '--b--']],
  ])('masks the credentials that follow %s', (_name, lines) => {
    const text = lines.join('\r\n')
    const shown = masked(text)
    expect(shown.length).toBe(text.length)
    expect(shown).not.toContain('SECRET')
  }) // prettier-ignore

  it.each([
    ['unterminated heads', 'A B HTTP/1.1\r\n'],
    ['known delimiters', '--b\r\n'],
    ['unknown delimiters', '\r\n\r\nA B HTTP/1.1\r\n\r\n--c\r\n'],
    ['boundaries', 'boundary="\r\n'],
  ])('masks a body in linear time with many %s', (_name, line) => {
    const beganMs = performance.now()
    expect(masked(line.repeat(100_000)).length).toBe(100_000 * line.length)
    expect(performance.now() - beganMs).toBeLessThan(20_000)
  })
})
