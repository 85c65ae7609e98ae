import { describe, expect, it } from 'vitest'

import { type PassedFields, readPassedField } from '../../src/translate/passed-fields.ts'

const id = 'ABCDEF01-0000-4000-8000-000000000001'

describe('readPassedField', () => {
  const read: [name: string, raw: string, passed: PassedFields][] = [
    ['RecordedOn', '"2014-02-13T13:00:00Z"', { RecordedOn: '2014-02-13T13:00:00Z' }],
    [
      'RecordedOn',
      "'2014-02-13T13:00:00.1234567+01:00'",
      { RecordedOn: '2014-02-13T13:00:00.1234567+01:00' },
    ],
    ['AttendableEventStart', '"2014-02-13T13:00-09:30"', { AttendableEventStart: '2014-02-13T13:00-09:30' }],
    ['ChangeProcessName', '"caf\\u00e9"', { ChangeProcessName: 'caf\u00e9' }],
    ['ChangeProcessName', 'null', { ChangeProcessName: null }],
    ['RecordedBy', `"${id}"`, { RecordedBy: { ExternalID: id, Type: 'AuthorisedUser' } }],
    ['RecordedBy', 'null', { RecordedBy: null }],
  ]
  it.each(read)('hands on %s: %s', (name, raw, expected) => {
    const passed: PassedFields = {}
    expect(readPassedField({ name, raw }, passed)).toBe(undefined)
    expect(passed).toEqual(expected)
  })

  const refused: [name: string, raw: string, rule: string][] = [
    ['RecordedOn', 'null', 'a date-time with an offset'],
    ['RecordedOn', '"2014-02-13"', 'a date-time with an offset'],
    ['RecordedOn', '"2014-02-13T13:00:00"', 'a date-time with an offset'],
    ['RecordedOn', '"2014-02-13T13:00:00Z\\n"', 'a date-time with an offset'],
    ['AttendableEventStart', '1392296400', 'a date-time with an offset'],
    ['ChangeProcessName', '{"a":1}', 'a string or null'],
    ['ChangeProcessName', 'false', 'a string or null'],
    ['RecordedBy', '""', 'a guid or null'],
    ['RecordedBy', '"x"', 'a guid or null'],
    ['RecordedBy', `{"ExternalID":"${id}"}`, 'a guid or null'],
  ]
  it.each(refused)('refuses %s: %s', (name, raw, rule) => {
    const passed: PassedFields = {}
    expect(readPassedField({ name, raw }, passed)).toEqual({
      code: 'ADP_FIELD',
      message: `${name} must be ${rule}.`,
    })
    expect(passed).toEqual({})
  })

  it.each(['recordedOn', 'ExternalID', '@odata.type', '__proto__', 'AttendanceHistorys', ''])(
    'knows no place for %j',
    (name) => {
      const passed: PassedFields = {}
      expect(readPassedField({ name, raw: '"x"' }, passed)).toBe('noPlace')
      expect(passed).toEqual({})
    },
  )
})
