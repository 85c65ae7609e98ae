import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { comparePair, type Pair, type RecordDiff } from '../../../src/compare/diff/compare-pair.ts'
import { type Verdict, verdicts } from '../../../src/compare/verdict.ts'
import { runs } from '../../support/long-run.ts'
import { guid, markRow } from './mark-rows.ts'

const diffMarks = (v2: readonly unknown[], v3: readonly unknown[], options: Pick<Pair, 'order'> = {}) =>
  comparePair({ kind: 'marks', v2, v3, ...options })

const numRuns = runs(300, 5_000)

/** Rows with few ids, learners and sessions, so that many rows match each other, and occasionally a value that is not a row. */
const wildRow = fc.oneof(
  {
    weight: 9,
    arbitrary: fc
      .record({
        ExternalID: fc.option(fc.integer({ min: 0, max: 6 })),
        Learner: fc.option(fc.integer({ min: 0, max: 3 }), { freq: 9 }),
        AttendableEvent: fc.integer({ min: 0, max: 2 }),
        MinutesLate: fc.constantFrom(null, 0, 5, '5'),
        Comment: fc.constantFrom(null, '', 'dentist', undefined),
      })
      .map(({ ExternalID, Learner, AttendableEvent, ...others }) =>
        markRow(1, {
          ...others,
          ExternalID: ExternalID === null ? null : guid(0xa, ExternalID),
          Learner: Learner === null ? null : guid(0xc, Learner),
          AttendableEvent: guid(0xd, AttendableEvent),
        }),
      ),
  },
  { weight: 1, arbitrary: fc.jsonValue() },
)
const wildRows = fc.array(wildRow, { maxLength: 14 })

/** Returns the findings in sorted order, so that the order of the rows does not matter. */
const found = (diffs: readonly RecordDiff[]): readonly string[] =>
  diffs
    .map(({ comparison: { verdict, differences, equivalences } }) =>
      JSON.stringify([
        verdict,
        differences.map((one) => JSON.stringify(one)).toSorted(),
        equivalences.map((one) => JSON.stringify(one)).toSorted(),
      ]),
    )
    .toSorted()

/** Counts the records of one side. Rows with the same key count once, and each row without a key counts. */
const recordsOf = (diffs: readonly RecordDiff[], side: 'v2' | 'v3'): number =>
  diffs.filter((diff) => diff[side] !== undefined).length

describe('comparePair for random rows', () => {
  it('returns exactly one verdict for each record', () => {
    fc.assert(
      fc.property(wildRows, wildRows, (v2, v3) => {
        const diffs = diffMarks(v2, v3)
        const of = (verdict: Verdict): number =>
          diffs.filter(({ comparison }) => comparison.verdict === verdict).length
        expect(verdicts.reduce((sum, verdict) => sum + of(verdict), 0)).toBe(diffs.length)
        // Each side has the same number of records as in a comparison with an empty side.
        expect(recordsOf(diffs, 'v2')).toBe(diffMarks(v2, []).length)
        expect(recordsOf(diffs, 'v3')).toBe(diffMarks([], v3).length)
        for (const {
          comparison: { verdict, differences },
        } of diffs) {
          expect(differences.length > 0).toBe(verdict === 'differs')
        }
      }),
      { numRuns },
    )
  })

  it('returns the same result for rows in any order', () => {
    const shuffled = wildRows.chain((rows) =>
      fc.tuple(fc.constant(rows), fc.shuffledSubarray(rows, { minLength: rows.length })),
    )
    fc.assert(
      fc.property(shuffled, shuffled, ([v2, otherV2], [v3, otherV3]) => {
        const free = { order: 'free' } as const
        expect(found(diffMarks(otherV2, otherV3, free))).toEqual(found(diffMarks(v2, v3, free)))
      }),
      { numRuns },
    )
  })

  it('finds no difference between rows and their copies', () => {
    fc.assert(
      fc.property(wildRows, (rows) => {
        const copy = JSON.parse(JSON.stringify(rows)) as unknown[]
        for (const { comparison } of diffMarks(rows, copy))
          expect(['same', 'unknown']).toContain(comparison.verdict)
      }),
      { numRuns },
    )
  })

  it('returns mirrored verdicts if the two sides are swapped', () => {
    const mirror: Readonly<Record<string, string>> = { onlyV2: 'onlyV3', onlyV3: 'onlyV2' }
    fc.assert(
      fc.property(wildRows, wildRows, (v2, v3) => {
        const of = (diffs: readonly RecordDiff[]): readonly string[] =>
          diffs.map(({ comparison }) => comparison.verdict)
        const there = of(diffMarks(v2, v3, { order: 'free' }))
        const back = of(diffMarks(v3, v2, { order: 'free' })).map((verdict) => mirror[verdict] ?? verdict)
        expect(back.toSorted()).toEqual(there.toSorted())
      }),
      { numRuns },
    )
  })
})

describe('the result of comparePair', () => {
  it('contains no value and no member name of the rows', () => {
    const marker = fc.string({
      minLength: 6,
      maxLength: 12,
      unit: fc.constantFrom('q', 'x', 'z', 'Q', 'X', 'Z', '#', '§', 'é'),
    })
    const hostile = fc.dictionary(marker, fc.oneof(marker, fc.array(marker), fc.dictionary(marker, marker)))
    const row = fc
      .tuple(fc.nat({ max: 3 }), marker, hostile, fc.boolean())
      .map(([index, text, others, isText]) => ({
        ...markRow(index, { Comment: text, ChangeProcessName: isText ? text : null, RecordedBy: text }),
        ...others,
        '@odata.context': text,
        Enrolments: [{ ExternalID: text, Comment: text }, text],
      }))
    const rows = fc.array(row, { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(rows, rows, (v2, v3) => {
        for (const kind of ['marks', 'registrations'] as const) {
          const text = JSON.stringify(comparePair({ kind, v2, v3 }).map(({ comparison }) => comparison))
          expect(text).not.toMatch(/[qxzQXZ#§é]{2}|[0-9a-f]{8}-|2026|Acme/)
        }
      }),
      { numRuns },
    )
  })
})
