import { expect, it } from 'vitest'

import { createLatestMarks } from '../../../src/compare/live/latest-marks.ts'

it('knows a correction, and what a newer write superseded, by partner and key', () => {
  const latest = createLatestMarks()
  const [first, unknown] = latest.placesOf('acme', ['a', undefined])
  expect([first?.isCorrection, first?.isSuperseded()]).toEqual([false, false])
  latest.wrote('other', ['a'])
  expect(first?.isSuperseded()).toBe(false)
  latest.wrote('acme', ['b', undefined, 'a'])
  expect([first?.isSuperseded(), unknown?.isSuperseded()]).toEqual([true, false])
  const [second, third] = latest.placesOf('acme', ['a', 'a'])
  expect([second?.isCorrection, second?.isSuperseded()]).toEqual([true, true])
  expect([third?.isCorrection, third?.isSuperseded()]).toEqual([true, false])
})

it('forgets what was written longest ago', () => {
  const latest = createLatestMarks()
  const keys = Array.from({ length: 50_000 }, (_, index) => String(index))
  latest.wrote('acme', keys)
  latest.wrote('acme', ['0', 'new'])
  const isKnown = latest.placesOf('acme', ['0', '2', 'new']).map(({ isCorrection }) => isCorrection)
  expect(isKnown).toEqual([true, true, true])
  const [oldest] = latest.placesOf('acme', ['1'])
  expect(oldest?.isCorrection).toBe(false)
})
