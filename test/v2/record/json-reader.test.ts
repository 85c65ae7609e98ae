import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { JsonReader } from '../../../src/v2/record/json-reader.ts'

function readRaw(text: string): unknown {
  const reader = new JsonReader(text)
  return reader.readRaw() ?? reader.fault
}

function readString(text: string): unknown {
  const reader = new JsonReader(text)
  return reader.readString() ?? reader.fault
}

const deep = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)

describe('JsonReader', () => {
  const values = [
    '0', '-0', '1.50', '-1e+10', '12E-3', '123456789012345678901', 'true', 'false', 'null', '""', "''", '"a\\u0041"', '[]', '{}',
    '[1, [2 ,{"a" : [ ] }],"x"]', '{"a":1,"b":{"a":2}}', "{'a':'b'}", deep(64), '{"A":1,"a":2}',
  ] // prettier-ignore
  it.each(values)('skips the value %s, and returns its text', (text) => {
    expect(readRaw(` \t\r\n${text} ,`)).toBe(text)
  })

  const faults: [text: string, message: string, position: number][] = [
    ['', 'a value is expected', 0],
    ['01', 'a value is expected', 0],
    ['-', 'a value is expected', 0],
    ['+1', 'a value is expected', 0],
    ['nul', 'a value is expected', 0],
    ['truex', 'a value is expected', 0],
    ['undefined', 'a value is expected', 0],
    ['[1', 'a comma or the end of the value is expected', 2],
    ['[1,]', 'a value is expected', 3],
    ['[1 2]', 'a comma or the end of the value is expected', 3],
    ['{a:1}', 'a string is expected', 1],
    ['{"a"}', 'a colon is expected', 4],
    ['{"a":1,}', 'a string is expected', 7],
    ['{"a":1,"\\u0061":2}', 'a name occurs twice in one object', 15],
    ['{"a', 'a string is not closed', 1],
    ['{"a":"b', 'a string is not closed', 5],
    [deep(66), 'values are nested deeper than 64 levels', 65],
  ]
  it.each(faults)('refuses the text %j', (text, message, position) => {
    expect(readRaw(text)).toEqual({ message, position })
  })

  const strings: [text: string, value: string][] = [
    ['"plain"', 'plain'],
    ["'single \"'", 'single "'],
    [`"it's"`, "it's"],
    ['"\\"\\\'\\\\\\/\\b\\f\\n\\r\\t"', '"\'\\/\b\f\n\r\t'],
    ["'it\\'s'", "it's"],
    ['"\\u00e9\\uD83D\\uDE00\\ud800x"', 'é😀\ud800x'],
    ['"é😀\u2028\u007f"', 'é😀\u2028\u007f'],
  ]
  it.each(strings)('reads the string %j (batch-wire F30)', (text, value) => {
    expect(readString(` ${text}`)).toBe(value)
  })

  const badStrings: [text: string, message: string, position: number][] = [
    ['1', 'a string is expected', 0],
    ['"a\nb"', 'a string has a control character', 2],
    ['"\\na\u0000"', 'a string has a control character', 4],
    ['"\\x41"', 'an escape is unknown', 1],
    ['"\\u12G4"', 'a \\u escape needs four hexadecimal digits', 1],
    ['"\\u12', 'a \\u escape needs four hexadecimal digits', 1],
    ['"\\', 'an escape is unknown', 1],
    ['"\\n', 'a string is not closed', 0],
    [`"a'`, 'a string is not closed', 0],
  ]
  it.each(badStrings)('refuses the string %j', (text, message, position) => {
    expect(readString(text)).toEqual({ message, position })
  })

  it.each(['\ufeff{}', '\ufeff \n{}', '\r\n \ufeff{}'])(
    'skips the byte order mark of %j (batch-wire F20)',
    (text) => {
      expect(readRaw(text)).toBe('{}')
    },
  )

  it('reports only the first fault', () => {
    const reader = new JsonReader('x')
    expect([reader.fail('one'), reader.fail('two', 1)]).toEqual([false, false])
    expect(reader.fault).toEqual({ message: 'one', position: 0 })
  })

  it('accepts every text that JSON.parse accepts', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), fc.constantFrom('', ' ', '\n\t'), (json, blank) => {
        expect(readRaw(blank + json)).toBe(json)
      }),
    )
  })

  it('rejects the texts that JSON.parse rejects, except for single quotes', () => {
    const text = fc.string({
      unit: fc.constantFrom(...Array.from('[]{},:"\\u0123eE+-.truefalsn \n')),
      maxLength: 12,
    })
    fc.assert(
      fc.property(text, (candidate) => {
        const reader = new JsonReader(candidate)
        const accepted = reader.readRaw() !== undefined && Number.isNaN(reader.peek())
        expect(accepted).toBe(isJson(candidate))
      }),
      { numRuns: 2_000 },
    )
  })
})

/** Returns true if JSON.parse accepts the text and no object in it repeats a name. */
function isJson(text: string): boolean {
  try {
    return JSON.stringify(JSON.parse(text)).length > 0 && !/"([^"]*)"\s*:.*"\1"\s*:/s.test(text)
  } catch {
    return false
  }
}
