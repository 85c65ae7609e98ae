import { describe, expect, it } from 'vitest'

import { comparePair } from '../../../src/compare/diff/compare-pair.ts'
import { guid, outline } from './mark-rows.ts'

type Document = Record<string, unknown>

const registration = (index: number, changes: Document = {}): Document => ({
  ExternalID: guid(1, index),
  UPN: `A${index}`,
  Enrolments: [
    {
      ExternalID: guid(2, index),
      StartDate: '2024-09-02',
      EnrolmentStatuses: [{ EnrolmentStatus: 'C' }, { EnrolmentStatus: 'M' }],
    },
    { ExternalID: guid(3, index), StartDate: '2025-09-02', EnrolmentStatuses: [] },
  ],
  ...changes,
})

const found = (v2: Document, v3: Document): readonly string[] =>
  outline(comparePair({ kind: 'registrations', v2: [v2], v3: [v3] }))

/** Returns a document with changed enrolments. */
const withEnrolments = (change: (enrolments: Document[]) => unknown[]): Document => {
  const document = registration(1)
  return { ...document, Enrolments: change(document['Enrolments'] as Document[]) }
}

describe('comparePair for registrations', () => {
  it('aligns documents by ExternalID', () => {
    const documents = [1, 2, 3].map((index) => registration(index))
    const v3 = [{}, ...documents.toReversed().slice(1)]
    const diffs = comparePair({ kind: 'registrations', v2: documents, v3, order: 'free' })
    expect(diffs.map(({ comparison }) => comparison.verdict)).toEqual(['same', 'same', 'onlyV2', 'unknown'])
  })

  it('aligns list elements by ExternalID, in any order', () => {
    const reversed = withEnrolments((list) => list.toReversed())
    expect(found(registration(1), reversed)).toEqual(['equivalent, order-unasked Enrolments'])
  })

  it.each<readonly [string, (list: Document[]) => unknown[], string]>([
    [
      'a changed member in an element of a list',
      ([one, two]) => [{ ...one, StartDate: '2024-09-03' }, two],
      'Enrolments/StartDate value length:10-20 length:10-20',
    ],
    ['a missing element', ([, two]) => [two], 'Enrolments missing element missing'],
    ['a new element', (list) => [...list, { ExternalID: guid(9, 9) }], 'Enrolments extra missing element'],
    ['a duplicate element', ([one, two]) => [one, one, two], 'Enrolments count count:1 count:2'],
    [
      'a changed element in a list without ids',
      ([one, two]) => [
        { ...one, EnrolmentStatuses: [{ EnrolmentStatus: 'X' }, { EnrolmentStatus: 'C' }] },
        two,
      ],
      'Enrolments/EnrolmentStatuses/EnrolmentStatus value length:1-9 length:1-9',
    ],
    [
      'a list that became an object',
      ([one, two]) => [{ ...one, EnrolmentStatuses: {} }, two],
      'Enrolments/EnrolmentStatuses type list object',
    ],
    [
      'a member that the model does not define',
      ([one, two]) => [{ ...one, 'Ada Lovelace': { Born: 1815 } }, two],
      'Enrolments/(other) extra missing object',
    ],
  ])('finds %s', (_, change, expected) => {
    expect(found(registration(1), withEnrolments(change))).toEqual([`differs, ${expected}`])
  })

  it('reports an unknown member name once, even if it occurs deeply and often', () => {
    const of = (value: number): Document =>
      registration(1, { Ada: { Byron: { born: value } }, Bob: { Byron: { born: value } } })
    expect(found(of(1), of(2))).toEqual(['differs, (other) value number:1-5 number:1-5'])
  })

  it('limits the number of findings per document', () => {
    const names = 'Enrolments EnrolmentStatuses Comment StartDate Learner UPN Absent Present'.split(' ')
    const tree = (depth: number, leaf: unknown): unknown =>
      depth === 0 ? leaf : Object.fromEntries(names.map((name) => [name, tree(depth - 1, leaf)]))
    const [diff] = comparePair({
      kind: 'registrations',
      v2: [registration(1, { Enrolments: tree(4, 'a') })],
      v3: [registration(1, { Enrolments: tree(4, 'b') })],
    })
    expect(diff?.comparison.differences.length).toBe(200)
  })
})
