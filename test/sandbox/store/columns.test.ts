import { expect, test } from 'vitest'
import { integer, integerOrNull, text, textOrNull } from '../../../src/sandbox/store/columns.ts'

const row = { number: 1, word: 'a', nothing: null }

test('values come out with their types', () => {
  expect([integer(row, 'number'), integerOrNull(row, 'nothing'), integerOrNull(row, 'number')]).toEqual([
    1,
    null,
    1,
  ])
  expect([text(row, 'word'), textOrNull(row, 'nothing'), textOrNull(row, 'word')]).toEqual(['a', null, 'a'])
})

test.each([
  [() => integer(row, 'word')],
  [() => integer(row, 'nothing')],
  [() => integer(row, 'missing')],
  [() => integerOrNull(row, 'word')],
  [() => text(row, 'number')],
  [() => text(row, 'nothing')],
  [() => textOrNull(row, 'number')],
])('a value of another type is an internal fault', (read) => {
  expect(read).toThrow(expect.objectContaining({ code: 'ADP_INTERNAL' }))
})
