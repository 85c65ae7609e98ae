import { describe, expect, it } from 'vitest'

import { createRowEncoder, encodeFlatPage, encodeFlatReply, type FlatReply } from '../../../src/v2/index.ts'
import { flatMark } from '../../support/flat-mark.ts'

const reply: FlatReply = {
  ExternalID: '5f1e7a9d-2c41-4b6f-8cc9-04d64a8b9c3e',
  Present: true,
  Absent: false,
  RecordedOn: '2024-09-05T08:55:00Z',
  ChangeProcessName: 'a "b"',
  AttendableEventStart: '2024-09-05T08:00:00Z',
  RecordedBy: '1a2b3c4d-5e6f-4a7b-8c9d-0e1f2a3b4c5d',
  Learner: '2b6f0cc9-04d6-4a8b-9c3e-5f1e7a9d2c41',
  AttendableEvent: 'a7c1e2d3-5b4f-4e6a-8d7c-9b0a1f2e3d4c',
  SchoolAttendanceCode: '9d8e7f6a-1b2c-4d3e-8f9a-0b1c2d3e4f5a',
  MinutesLate: 5,
  Comment: 'first\r\nsecond \u2028 é',
}
const nothing: FlatReply = {
  ...reply,
  RecordedOn: null,
  ChangeProcessName: null,
  AttendableEventStart: null,
  RecordedBy: null,
  MinutesLate: null,
  Comment: null,
}
const CONTEXT = 'http://adapter.example/V2/Attendance/$metadata#AttendanceRecords/$entity'

describe('encodeFlatReply', () => {
  it.each([reply, nothing])(
    'writes one line of JSON with the members in the order of the service (batch-wire A4)',
    (flat) => {
      const text = encodeFlatReply(flat, CONTEXT, 'minimal')
      expect(text).not.toMatch(/[\r\n]/)
      expect(text).toBe(JSON.stringify({ '@odata.context': CONTEXT, ...flat, AttendanceHistorys: [] }))
    },
  )

  it('writes the metadata annotations of the level that the record requested', () => {
    const keys = (level: 'none' | 'minimal' | 'full'): string[] =>
      Object.keys(JSON.parse(encodeFlatReply(reply, CONTEXT, level)) as object)
    expect(keys('none')[0]).toBe('ExternalID')
    expect(keys('minimal')[0]).toBe('@odata.context')
    expect(keys('full')[0]).toBe('@odata.type')
    expect(encodeFlatReply(reply, CONTEXT, 'full')).toContain(
      '"@odata.type":"#AttendanceService.Models.OData.AttendanceRecord"',
    )
  })
})

const row = flatMark({ MinutesLate: 5, Comment: 'a "b"' })

describe('createRowEncoder', () => {
  it('writes all fields of a row as encodeFlatReply writes them for a single record', () => {
    expect(createRowEncoder(undefined, 'minimal')(row)).toBe(encodeFlatReply(row, '', 'none'))
    expect(createRowEncoder(undefined, 'full')(row)).toBe(encodeFlatReply(row, '', 'full'))
  })

  it.each([
    [['Comment', 'Present'], 'minimal', '{"Present":true,"Comment":"a \\"b\\""}'],
    [['AttendanceHistorys', 'MinutesLate'], 'none', '{"MinutesLate":5,"AttendanceHistorys":[]}'],
    [['Learner'], 'full', '{"@odata.type":"#AttendanceService.Models.OData.AttendanceRecord","Learner":"l"}'],
  ] as const)(
    'writes the selected fields %j in the order of the service (metadata level %s)',
    (select, level, json) => {
      expect(createRowEncoder(new Set(select), level)(row)).toBe(json)
    },
  )
})

it('the row encoder writes the histories of a mark without nested histories', () => {
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
    ['rows with a count and a link', { ...page, count: 0, next: 'n' }, '{"@odata.context":"c","@odata.count":0,"value":[{},{}],"@odata.nextLink":"n"}'],
    ['an empty page without metadata', { ...page, metadata: 'none', rows: [] }, '{"value":[]}'],
    ['rows in an envelope', { ...page, dataEnvelope: true }, '{"d":{"@odata.context":"c","results":[{},{}]}}'],
    ['rows with a count and a link in an envelope', { ...page, metadata: 'none', count: 7, next: 'n', dataEnvelope: true }, '{"d":{"__count":"7","results":[{},{}],"__next":"n"}}'],
  ] as const)('writes %s', (_name, own, json) => {
    expect(encodeFlatPage(own)).toEqual([json])
  }) // prettier-ignore

  it('splits a long page into pieces between its rows', () => {
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
