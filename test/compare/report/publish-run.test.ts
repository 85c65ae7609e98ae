import { describe, expect, it } from 'vitest'

import { publishRun, writeReport } from '../../../src/compare/report/index.ts'
import { counts, emptyRun, samples } from './sample-runs.ts'

const outcomes: Readonly<Record<keyof typeof samples, readonly string[]>> = {
  empty: ['inconclusive', 'nothingCompared'],
  identical: ['ready'],
  ready: ['ready'],
  term: ['differs', 'expiredRules'],
  school: ['differs'],
  stopped: ['inconclusive', 'incomplete', 'tooFewCompared', 'unknown'],
  live: ['differs', 'unknown'],
  manyClasses: ['differs'],
  hostile: ['differs', 'expiredRules'],
}

/** Every number of a document that counts records. */
function countsOf(value: unknown, name = ''): number[] {
  if (Array.isArray(value)) return value.flatMap((one) => countsOf(one, name))
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([member, one]) => countsOf(one, member))
  return name === 'schema' || name === 'upToMs' || typeof value !== 'number' ? [] : [value]
}

describe('publishRun', () => {
  it.each(Object.entries(samples))('prints multiples of 5 alone of %s, and 0 as 0 alone', (_, document) => {
    const [exact, published] = [true, false].map((own) => countsOf(publishRun(document, { exact: own })))
    expect(published?.filter((count) => count % 5 !== 0)).toEqual([])
    const isNear = (count: number, index: number): boolean => {
      const shown = published?.[index] ?? NaN
      return count === 0 ? shown === 0 : Math.abs(shown - count) <= (count < 5 ? 4 : 2) && shown > 0
    }
    expect(exact?.every(isNear)).toBe(true)
  })

  it.each(Object.entries(samples))('prints the counts of %s as they are with exact', (name, document) => {
    const { report, exact, outcome, doubts, ...published } = publishRun(document, { exact: true })
    expect({ report, exact }).toEqual({ report: 'markbridge-compare', exact: true })
    expect([outcome, ...doubts]).toEqual(outcomes[name as keyof typeof samples])
    if (name !== 'hostile') expect(published).toEqual(document)
  })

  it('says no more records than were compared, whatever the rounded counts add up to', () => {
    const verdicts = counts({ differs: 3, onlyV2: 3, onlyV3: 1 })
    const page = writeReport({ ...emptyRun, offered: 7, compared: 7, verdicts }, 'html', { exact: false })
    expect(page).toContain('for 5 of 5 compared records (100 %)')
  })
})
