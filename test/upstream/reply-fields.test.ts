import { describe, expect, it } from 'vitest'

import { ReplyFields } from '../../src/upstream/index.ts'

const bytes = (...parts: string[]): Buffer[] => parts.map((part) => Buffer.from(part, 'latin1'))

describe('ReplyFields', () => {
  it.each([
    ['a missing field', ['Content-Type', 'text/html'], [], undefined],
    ['a field', ['retry-after', '5'], ['5'], '5'],
    ['a name in another case', ['RETRY-After', ' 5 '], ['5'], '5'],
    ['other names of the same length', ['retry-afteR', '5', 'retry-befor', '6'], ['5'], '5'],
    ['a field that is repeated', ['Retry-After', '5', 'X', 'y', 'retry-after', '5'], ['5', '5'], '5'],
    ['repeated fields that differ', ['Retry-After', '5', 'retry-after', '6'], ['5', '6'], undefined],
    ['an empty value', ['Retry-After', ''], [''], ''],
    ['a name without a value', ['Retry-After'], [], undefined],
    ['names of object members in JavaScript', ['constructor', 'x', '__proto__', 'y'], [], undefined],
  ])('returns the values of a field, for %s', (_what, raw, all, one) => {
    for (const fields of [new ReplyFields(raw), new ReplyFields(bytes(...raw))]) {
      expect(fields.all('retry-after')).toEqual(all)
      expect(fields.one('retry-after')).toBe(one)
    }
  })

  it('lists names and values as the upstream sent them', () => {
    expect(new ReplyFields(bytes('B', '1', 'a', '\xe9', 'B', '')).list()).toEqual([
      'B',
      '1',
      'a',
      'é',
      'B',
      '',
    ])
  })

  it.each([[null], [undefined], [{ 'retry-after': ['5', '5'] }]])('treats %j as no fields', (raw) => {
    expect(new ReplyFields(raw).list()).toEqual([])
  })
})
