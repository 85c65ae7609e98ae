import { describe, expect, it } from 'vitest'

import { createRowEncoder, encodeFlatPage, encodeFlatReply, type FlatReply } from '../../../src/v2/index.ts'

const row: FlatReply = {
  ExternalID: 'i',
  Present: true,
  Absent: false,
  RecordedOn: null,
  ChangeProcessName: null,
  AttendableEventStart: null,
  RecordedBy: null,
  Learner: 'l',
  AttendableEvent: 'e',
  SchoolAttendanceCode: 'c',
  MinutesLate: 5,
  Comment: 'a "b"',
}

describe('createRowEncoder', () => {
  it('writes all fields as a single record has them', () => {
    expect(createRowEncoder(undefined, 'minimal')(row)).toBe(encodeFlatReply(row, '', 'none'))
    expect(createRowEncoder(undefined, 'full')(row)).toBe(encodeFlatReply(row, '', 'full'))
  })

  it.each([
    [['Comment', 'Present'], 'minimal', '{"Present":true,"Comment":"a \\"b\\""}'],
    [['AttendanceHistorys', 'MinutesLate'], 'none', '{"MinutesLate":5,"AttendanceHistorys":[]}'],
    [['Learner'], 'full', '{"@odata.type":"#AttendanceService.Models.OData.AttendanceRecord","Learner":"l"}'],
  ] as const)('writes the selected %j in the order of the service, metadata %s', (select, level, json) => {
    expect(createRowEncoder(new Set(select), level)(row)).toBe(json)
  })
})

it('writes the states of a mark without states of their own', () => {
  const state = { ...row, ExternalID: 's', Comment: null }
  const json = createRowEncoder(
    new Set(['Learner', 'AttendanceHistorys']),
    'full',
  )({ ...row, histories: [state, row] })
  const { AttendanceHistorys, ...record } = JSON.parse(json) as Record<string, unknown>
  expect(record).toEqual({ '@odata.type': '#AttendanceService.Models.OData.AttendanceRecord', Learner: 'l' })
  expect(AttendanceHistorys).toEqual([state, row])
  expect(JSON.parse(encodeFlatReply({ ...row, histories: [state] }, '', 'none'))).toEqual({
    ...row,
    AttendanceHistorys: [state],
  })
})

describe('encodeFlatPage', () => {
  const page = {
    context: 'c',
    metadata: 'minimal',
    rows: ['{}', '{}'],
    count: undefined,
    next: undefined,
    dataEnvelope: false,
  } as const
  it.each([
    ['rows', page, '{"@odata.context":"c","value":[{},{}]}'],
    [
      'count and link',
      { ...page, count: 0, next: 'n' },
      '{"@odata.context":"c","@odata.count":0,"value":[{},{}],"@odata.nextLink":"n"}',
    ],
    ['no metadata, no rows', { ...page, metadata: 'none', rows: [] }, '{"value":[]}'],
    [
      'rows in an envelope',
      { ...page, dataEnvelope: true },
      '{"d":{"@odata.context":"c","results":[{},{}]}}',
    ],
    [
      'count and link in an envelope',
      { ...page, metadata: 'none', count: 7, next: 'n', dataEnvelope: true },
      '{"d":{"__count":"7","results":[{},{}],"__next":"n"}}',
    ],
  ] as const)('%s', (_name, own, json) => {
    expect(encodeFlatPage(own)).toEqual([json])
  })

  it('cuts a long page into pieces between its rows', () => {
    const rows = Array.from({ length: 500 }, (_, index) => JSON.stringify({ index, text: 'x'.repeat(400) }))
    const pieces = encodeFlatPage({ ...page, rows, next: 'n' })
    expect(pieces).toHaveLength(4)
    expect(JSON.parse(pieces.join(''))).toEqual({
      '@odata.context': 'c',
      value: rows.map((row) => JSON.parse(row) as unknown),
      '@odata.nextLink': 'n',
    })
  })
})
