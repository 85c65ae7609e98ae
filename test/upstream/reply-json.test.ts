import { describe, expect, it } from 'vitest'

import { parseJson } from '../../src/upstream/index.ts'

describe('parseJson', () => {
  it.each([
    ['{"a":1}', { a: 1 }],
    ['\ufeff{"a":1}', { a: 1 }],
    ['\ufeff\ufeff1', undefined],
    ['', undefined],
    ['undefined', undefined],
  ])('returns the value of %j, or undefined if the text is no JSON', (text, value) => {
    expect(parseJson(text)).toEqual(value)
  })

  it.each([
    ['a string', `{"a":${JSON.stringify('"[,{\\'.repeat(40_000))}}`, true],
    ['brackets', `[${'[],'.repeat(40_000)}1]`, false],
    ['members', `{${Array.from({ length: 20_000 }, (_, n) => `"${n}":1`).join()}}`, false],
    ['few members and many spaces', `{"a":1,"b":[]}${' '.repeat(70_000)}`, true],
  ])('limits the number of brackets and commas in a long text: %s', (_what, text, isRead) => {
    expect(parseJson(text, 100) !== undefined).toBe(isRead)
    expect(parseJson(text)).toBeDefined()
  })

  const nested = (open: string, close: string, depth: number): string =>
    open.repeat(depth) + '1' + close.repeat(depth)

  it.each([
    ['lists', '[', ']'],
    ['objects', '{"a":', '}'],
    ['both', '[{"a":', '}]'],
  ])('rejects JSON that is nested deeper than 128 levels: %s', (_what, open, close) => {
    const levels = open.startsWith('[{') ? 2 : 1
    expect(parseJson(nested(open, close, 128 / levels))).toBeDefined()
    expect(parseJson(nested(open, close, 128 / levels + 1))).toBeUndefined()
    expect(parseJson(nested(open, close, 200_000))).toBeUndefined()
  })

  it('does not count brackets in strings, or closed brackets, as levels', () => {
    const text = JSON.stringify([...Array.from({ length: 500 }, () => [{}]), `"[${'['.repeat(500)}\\`])
    expect(parseJson(text)).toBeDefined()
  })
})
