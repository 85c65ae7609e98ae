import { describe, expect, it } from 'vitest'

import { toV3RegistrationQuery } from '../../src/translate/index.ts'

describe('toV3RegistrationQuery', () => {
  it.each([
    ['', ''],
    ['expand=Enrolments', '$expand=Enrolments($expand=EnrolmentStatuses)'],
    [
      '$expand=Enrolments,BoarderStatuses,PartTimeRecords,UPNHistory&top=5',
      '$top=5&$expand=Enrolments($expand=EnrolmentStatuses),BoarderStatuses,PartTimeRecords,UPNHistory',
    ],
    ['expand=Enrolments($top=1)', '$expand=Enrolments($top=1)'],
    ["filter=AdmissionNumber eq '1'&own=1", "$filter=AdmissionNumber eq '1'"],
  ])('%s', (v2, v3) => {
    expect(decodeURIComponent(toV3RegistrationQuery(v2))).toBe(v3)
  })

  it('refuses what cannot be read', () => {
    expect(() => toV3RegistrationQuery('expand=(')).toThrow('$expand, character 0')
  })
})
