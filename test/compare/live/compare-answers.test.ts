import { describe, expect, it } from 'vitest'

import { compareAnswers, toAsked } from '../../../src/compare/live/compare-answers.ts'

const path = '/V2/Attendance/AttendanceRecords'
const request = { fields: [], body: undefined }
const reasonOf = (target: string, kind: Parameters<typeof toAsked>[0]['kind'] = 'readFilter'): unknown => {
  const asked = toAsked({ kind, target: path + target, request })
  return typeof asked === 'string' ? asked : undefined
}

describe('compareAnswers', () => {
  it.each([
    ['?$filter=a&$top=2', 'unordered'],
    ['?filter=a&top=2', 'unordered'],
    ['?filter=a&SKIP=2', 'unordered'],
    ['?filter=a&%74op=2&orderby=Learner', undefined],
    ['?$filter=a&$top=2&orderby=Learner', undefined],
    ['?$skiptoken=x', 'nextLink'],
    ['?$filter=a&skiptoken=x', undefined],
    ['?$filter=a&$select=Present', 'noKey'],
    ['?filter=a&select=Present,Learner', 'noKey'],
    ['?$filter=a&$select=Learner, AttendableEvent', undefined],
    ['?$filter=a&$select=ExternalID', undefined],
    ['?$filter=a&$select=*', undefined],
  ])('returns for the query %s the reason to skip the read, or undefined: %s', (target, reason) => {
    expect(reasonOf(target)).toBe(reason)
  })

  it('skips a read of one mark or of registrations whose $select has no key', () => {
    expect(reasonOf('(1)?$select=Present', 'readKey')).toBe('noKey')
    expect(reasonOf('?select=Learner,AttendableEvent', 'registrations')).toBe('noKey')
    expect(reasonOf('?$select=ExternalID', 'registrations')).toBeUndefined()
  })

  it.each(['$orderby', 'orderby', 'OrderBy'])('reports reversed rows as a difference only if the query has %s', (option) => {
    const rows = [1, 2].map((n) => ({ ExternalID: `0000000${n}-0000-4000-8000-000000000000`, Present: true }))
    const answer = (value: object[]) => ({ kind: 'answered', status: 200, text: JSON.stringify({ value }) }) as const
    const verdictsOf = (query: string): unknown => {
      const target = `${path}?filter=a${query}`
      const result = compareAnswers({ kind: 'readFilter', target }, answer(rows), answer(rows.toReversed()), {})
      return result.kind === 'compared' && result.records.map(({ verdict }) => verdict)
    }
    expect(verdictsOf('')).not.toContain('differs')
    expect(verdictsOf(`&${option}=ExternalID`)).toContain('differs')
  })
}) // prettier-ignore
