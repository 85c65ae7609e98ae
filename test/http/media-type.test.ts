import { describe, expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { parameterOf, parseMediaType } from '../../src/http/media-type.ts'

describe('parseMediaType', () => {
  const accepted: [text: string, type: string, parameters: [string, string, boolean][]][] = [
    ['text/plain', 'text/plain', []],
    ['Multipart/MIXED', 'multipart/mixed', []],
    [' \tmultipart/mixed ; ', 'multipart/mixed', []],
    ['multipart/mixed;boundary=b', 'multipart/mixed', [['boundary', 'b', false]]],
    ['multipart/mixed; BOUNDARY = "b c" ', 'multipart/mixed', [['boundary', 'b c', true]]],
    ['a/b; x=1;;y=2;', 'a/b', [['x', '1', false], ['y', '2', false]]],
    ['a/b; x=1; x=2', 'a/b', [['x', '1', false], ['x', '2', false]]],
    ['a/b; x=""', 'a/b', [['x', '', true]]],
    ['a/b; x=', 'a/b', [['x', '', false]]],
    ['a/b; x="a\\"b\\\\c;d"', 'a/b', [['x', 'a"b\\c;d', true]]],
    ['a/b; boundary=a/b:c=d?', 'a/b', [['boundary', 'a/b:c=d?', false]]],
    ['application/json;odata.metadata=minimal', 'application/json', [['odata.metadata', 'minimal', false]]],
  ] // prettier-ignore
  it.each(accepted)('reads the media type %j (batch-wire F5)', (text, type, parameters) => {
    expect(parseMediaType(text)).toEqual({ type, parameters })
  })

  const refused = [
    '', '/', 'a', 'a/', '/b', 'a b/c', 'a/b c', 'a/b; x', 'a/b; =1', 'a/b; x="1', 'a/b; x="1\\', 'a/b; x="1"2', 'a/b, c/d',
    'a/b; x=1\r\n', 'a/b; x=\u0000', 'a/b; x="\u001f"', 'a/b; x=\u007f',
  ] // prettier-ignore
  it.each(refused)('refuses the media type %j (batch-wire F6)', (text) => {
    expect(() => parseMediaType(text)).toThrow(AdapterError)
    expect(() => parseMediaType(text)).toThrow(/Content-Type/)
  })
})

describe('parameterOf', () => {
  it('returns the first of two values of a parameter', () => {
    const media = parseMediaType('a/b; x=1; X=2; charset="utf-8"')
    expect(['x', 'charset', 'y'].map((name) => parameterOf(media, name))).toEqual(['1', 'utf-8', undefined])
  })
})
