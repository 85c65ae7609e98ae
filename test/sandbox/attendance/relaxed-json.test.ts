import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseRelaxedJson } from '../../../src/sandbox/attendance/relaxed-json.ts'

test.each([
  ['{"a":1}', { a: 1 }],
  [`{'a':'b'}`, { a: 'b' }],
  [`{'a':"b",'c':[true,null]}`, { a: 'b', c: [true, null] }],
  [`{'a':'say "x"'}`, { a: 'say "x"' }],
  [`{'a':'O\\'Neill'}`, { a: "O'Neill" }],
  [`{'a':"O'Neill"}`, { a: "O'Neill" }],
  [`{'a':'\\\\'}`, { a: '\\' }],
  [`{'a':'\\u0041\\n'}`, { a: 'A\n' }],
])('%s is read', (text, value) => {
  expect(parseRelaxedJson(text)).toEqual(value)
})

test.each(['', '{', `{'a':'b}`, `{'a:1}`, `{a:1}`, `{'a':'b'`, `'`, '{"a":undefined}', `{'a':'b',}`])(
  '%j is broken',
  (text) => {
    expect(parseRelaxedJson(text)).toBeUndefined()
  },
)

test('every JSON value survives, and long broken text ends soon', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(parseRelaxedJson(JSON.stringify(value))).toEqual(JSON.parse(JSON.stringify(value)))
    }),
  )
  expect(parseRelaxedJson(`'\\`.repeat(500_000))).toBeUndefined()
})
