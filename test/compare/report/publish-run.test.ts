import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import type { PublishedCount, PublishedRun } from '../../../src/compare/report/published-run.ts'
import { publishRun } from '../../../src/compare/report/publish-run.ts'
import type { RunDocument } from '../../../src/compare/run-document.ts'
import { runs } from '../../support/long-run.ts'
import {
  counts,
  emptyRun,
  hostileRun,
  identicalRun,
  liveRun,
  manyClassesRun,
  readyRun,
  schoolRun,
  stoppedRun,
  termRun,
} from './sample-runs.ts'

const samples = {
  emptyRun,
  identical: identicalRun(),
  ready: readyRun(),
  term: termRun(),
  school: schoolRun(),
  stopped: stoppedRun(),
  live: liveRun(),
  manyClasses: manyClassesRun(),
  hostile: hostileRun(),
}

const outcomes: Readonly<Record<keyof typeof samples, readonly string[]>> = {
  emptyRun: ['inconclusive', 'nothingCompared'],
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
function countsOf(value: unknown, name = ''): unknown[] {
  if (Array.isArray(value)) return value.flatMap((one) => countsOf(one, name))
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([member, one]) => countsOf(one, member))
  return name === 'schema' || name === 'upToMs' || typeof value !== 'number' ? [] : [value]
}

describe('publishRun', () => {
  it.each(Object.entries(samples))('prints no count from 1 to 4 of %s', (_, document) => {
    const published = publishRun(document, { exact: false })
    expect(countsOf(published).filter((count) => Number(count) > 0 && Number(count) < 5)).toEqual([])
  })

  it.each(Object.entries(samples))('prints the counts of %s as they are with exact', (name, document) => {
    const { report, exact, outcome, doubts, ...published } = publishRun(document, { exact: true })
    expect({ report, exact }).toEqual({ report: 'markbridge-compare', exact: true })
    expect([outcome, ...doubts]).toEqual(outcomes[name as keyof typeof samples])
    if (name === 'hostile') return
    expect(published).toEqual(document)
  })

  it('withholds the totals that would give away how many records differ', () => {
    const document: RunDocument = {
      ...emptyRun,
      offered: 12_000,
      compared: 12_000,
      verdicts: counts({ same: 11_997, differs: 3 }),
      differences: [{ path: 'Comment', kind: 'value', v2Class: 'length:1-9', v3Class: 'null', count: 3 }],
    }
    const { offered, compared, verdicts, differences } = publishRun(document, { exact: false })
    expect({ offered, compared, verdicts, count: differences[0]?.count }).toEqual({
      offered: '>=11998',
      compared: '>=11998',
      verdicts: counts({ same: 11_997, differs: '<5' as never }),
      count: '<5',
    })
  })

  it('withholds a second day where the total of all days would give away the first', () => {
    const document: RunDocument = {
      ...emptyRun,
      offered: 122,
      compared: 122,
      verdicts: counts({ same: 100, differs: 22 }),
      days: [
        { name: '2026-01-05', verdicts: counts({ same: 50, differs: 20 }) },
        { name: '2026-01-06', verdicts: counts({ same: 50, differs: 2 }) },
      ],
    }
    const { compared, days } = publishRun(document, { exact: false })
    expect([compared, ...days.map(({ verdicts }) => verdicts.differs)]).toEqual([122, '>=18', '<5'])
  })

  it('withholds records that belong to no class where the rest of a table would be small', () => {
    const document: RunDocument = {
      ...emptyRun,
      offered: 22,
      compared: 22,
      verdicts: counts({ differs: 22 }),
      codeClasses: [{ name: 'code:present', verdicts: counts({ differs: 20 }) }],
      kinds: [
        { name: 'marks', verdicts: counts({ differs: 20 }) },
        { name: 'registrations', verdicts: counts({ differs: 2 }) },
      ],
    }
    const { codeClasses, kinds } = publishRun(document, { exact: false })
    expect([codeClasses, kinds].flat().map(({ verdicts }) => verdicts.differs)).toEqual([
      '>=18',
      '>=18',
      '<5',
    ])
  })

  it('leaves at least three values possible for each small count, whatever a reader computes', () => {
    const cell = fc.oneof(fc.integer({ min: 0, max: 6 }), fc.constant(0), fc.integer({ min: 5, max: 9 }))
    const table = fc.array(fc.record({ same: cell, differs: cell }), { minLength: 1, maxLength: 3 })
    fc.assert(
      fc.property(table, fc.integer({ min: 0, max: 3 }), (days, dropped) => {
        const document = tableRun(days, dropped)
        const possible = possibleCounts(publishRun(document, { exact: false }))
        const exact = publishRun(document, { exact: true })
        days.forEach((day, index) => {
          for (const verdict of ['same', 'differs'] as const)
            if (day[verdict] > 0 && day[verdict] < 5) {
              const values = possible.map((one) => one.days[index]?.[verdict])
              expect(new Set(values).size).toBeGreaterThanOrEqual(3)
            }
        })
        for (const verdict of ['same', 'differs'] as const) {
          const value = exact.verdicts[verdict]
          const values = new Set(possible.map((one) => one.verdicts[verdict]))
          if (Number(value) > 0 && Number(value) < 5) expect(values.size).toBeGreaterThanOrEqual(3)
        }
      }),
      { numRuns: runs(150, 5000) },
    )
  })
})

interface Table {
  readonly days: readonly { readonly same: number; readonly differs: number }[]
  readonly verdicts: { readonly same: number; readonly differs: number }
}

function tableRun(days: Table['days'], dropped: number): RunDocument {
  const same = days.reduce((sum, day) => sum + day.same, 0)
  const differs = days.reduce((sum, day) => sum + day.differs, 0)
  return {
    ...emptyRun,
    offered: same + differs + dropped,
    compared: same + differs,
    dropped,
    verdicts: counts({ same, differs }),
    days: days.map((day, index) => ({ name: `2026-01-0${index + 1}`, verdicts: counts(day) })),
  }
}

const allows = (count: PublishedCount | undefined, value: number): boolean => {
  if (typeof count === 'number') return count === value
  return count === '<5' ? value >= 1 && value <= 4 : value >= Number(count?.slice(2))
}

/** Every table that a reader of the report cannot rule out; counts above 13 are not tried. */
function possibleCounts(report: PublishedRun): Table[] {
  const column = (verdict: 'same' | 'differs'): number[][] =>
    report.days.reduce<number[][]>(
      (tables, day) =>
        tables.flatMap((values) => {
          const count = day.verdicts[verdict]
          const tried = typeof count === 'number' ? [count] : Array.from({ length: 14 }, (_, value) => value)
          return tried.filter((value) => allows(count, value)).map((value) => [...values, value])
        }),
      [[]],
    )
  const add = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)
  const fits = (verdict: 'same' | 'differs') => (values: number[]) =>
    allows(report.verdicts[verdict], add(values))
  const sames = column('same').filter(fits('same'))
  const differing = column('differs').filter(fits('differs'))
  return sames.flatMap((same) =>
    differing.flatMap((differs) => {
      const compared = add(same) + add(differs)
      const isPossible =
        allows(report.compared, compared) &&
        [0, 1, 2, 3, 4].some(
          (drop) => allows(report.dropped, drop) && allows(report.offered, compared + drop),
        )
      if (!isPossible) return []
      const days = same.map((value, index) => ({ same: value, differs: differs[index] ?? 0 }))
      return [{ days, verdicts: { same: add(same), differs: add(differs) } }]
    }),
  )
}
