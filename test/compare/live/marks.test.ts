import { expect, it } from 'vitest'

import { createLatestMarks } from '../../../src/compare/live/marks.ts'

it('createLatestMarks finds out by partner and key whether a mark is a correction or was superseded', () => {
  const latest = createLatestMarks()
  const [first, unknown] = latest.placesOf('acme', ['a', undefined])
  expect([first?.isCorrection, first?.isSuperseded()]).toEqual([false, false])
  latest.recordWrites('other', ['a'])
  expect(first?.isSuperseded()).toBe(false)
  latest.recordWrites('acme', ['b', undefined, 'a'])
  expect([first?.isSuperseded(), unknown?.isSuperseded()]).toEqual([true, false])
  const [second, third] = latest.placesOf('acme', ['a', 'a'])
  expect([second?.isCorrection, second?.isSuperseded()]).toEqual([true, true])
  expect([third?.isCorrection, third?.isSuperseded()]).toEqual([true, false])
})

it('createLatestMarks evicts the oldest marks first, whichever partner they belong to', () => {
  const latest = createLatestMarks()
  const keys = Array.from({ length: 50_000 }, (_, index) => String(index))
  latest.recordWrites('acme', keys)
  latest.recordWrites('other', ['a'])
  const [mark] = latest.placesOf('other', ['a'])
  latest.recordWrites('acme', ['0'])
  latest.recordWrites('other', keys)
  latest.recordWrites('other', ['a'])
  expect([mark?.isCorrection, mark?.isSuperseded()]).toEqual([true, true])
  const isKnown = (partner: string, ...of: string[]): unknown[] =>
    latest.placesOf(partner, of).map(({ isCorrection }) => isCorrection)
  expect(isKnown('acme', '0', '1')).toEqual([true, false])
  expect(isKnown('other', '0', 'a')).toEqual([true, true])
})
