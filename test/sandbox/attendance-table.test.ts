import { describe, expect, test } from 'vitest'
import { shareSandbox } from './share-sandbox.ts'
import { fixed } from './start-sandbox.ts'

const { url, call, read, list } = shareSandbox()

describe('the attendance rows of service.md 4', () => {
  const records = '/Attendance/V3/AttendanceRecords'
  const filter = `$filter=${encodeURIComponent(`AttendableEventStart eq 2026-03-02T09:00:00Z and Attendee/ExternalID eq ${fixed.learner}`)}`
  /** A body as service.md 2.10 has it, field by field. */
  const record = {
    ExternalID: fixed.zero,
    Present: true,
    Absent: false,
    RecordedOn: '2026-03-02T09:05:00Z',
    ChangeProcessName: 'Register',
    AttendableEventStart: '2026-03-02T09:00:00Z',
    RecordedBy: { ExternalID: fixed.unknown, Type: 'AuthorisedUser' },
    Attendee: { ExternalID: fixed.learner, Type: 'Learner.Identifier' },
    Event: { ExternalID: fixed.morning, Type: 'Attendance.AttendanceSession' },
    AttendanceCode: { ExternalID: fixed.present, Type: 'Attendance.Lookup' },
    Qualifier: { MinutesLate: 5, Comment: 'Bus' },
  }

  test.each([
    ['GET', `${records}?${filter}`],
    ['GET', `/stem/attendance/v3/AttendanceRecords?${filter.replace('$', '')}`],
    ['GET', `/Attendance/odata/V3/AttendanceRecords?${filter}`],
    ['GET', `/V2/Attendance/AttendanceRecords?$filter=AttendableEventStart%20eq%202026-03-02T09:00:00Z`],
    ['GET', `${records}/SIMS.Changes(startDate=2026-06-09)`],
    ['GET', '/Attendance/V3/StatutoryAttendanceRecordHistorys'],
    ['GET', '/Attendance/V3/StatutoryAttendanceRecordHistorys/SIMS.Changes(startDate=2026-06-09T00:00:00Z)'],
    ['GET', '/Attendance/V3/StatutoryAttendanceSessions?$top=1'],
    ['GET', '/Attendance/V3/AttendanceLookups?top=1'],
  ] as const)('%s %s needs the permission Attendance and no other', async (method, path) => {
    expect((await call(method, path, 'only-Attendance')).status).toBe(200)
    expect((await call(method, path, 'all-but-Attendance')).status).toBe(403)
  })

  test('a GET without $filter is refused', async () => {
    expect((await call('GET', records)).status).toBe(400)
  })

  test('a POST is echoed with its id and context, and can be read by that id', async () => {
    const body = JSON.stringify(record)
    expect((await call('POST', records, 'all-but-Attendance', body)).status).toBe(403)
    const { status, text } = await call('POST', records, 'only-Attendance', body)
    expect(status).toBe(201)
    const created = JSON.parse(text) as Record<string, unknown>
    const id = String(created['ExternalID'])
    expect(id).toMatch(/^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/)
    expect(id).not.toBe(fixed.zero)
    const context = `${url()}/Attendance/V3/$metadata#AttendanceRecords/$entity`
    expect(created).toEqual({
      '@odata.context': context,
      ...record,
      ExternalID: id,
      fabricated: null,
    })
    const single = await read(`${records}(${id})`, 'only-Attendance')
    expect(single).toEqual({ '@odata.context': context, ...record, ExternalID: id })
    expect((await call('GET', `${records}(${id})`, 'all-but-Attendance')).status).toBe(403)
    expect(await list(`${records}?${filter}`)).toEqual([{ ...record, ExternalID: id }])
  })

  test('single quotes around strings are read too', async () => {
    const body = JSON.stringify(record).replaceAll('"', "'")
    expect((await call('POST', records, 'sandbox', body)).status).toBe(201)
  })

  test('the V2 batch answers each record, with the error array of service.md 7', async () => {
    const flat = {
      '@odata.type': '#AttendanceService.Models.OData.AttendanceRecord',
      ...{ Present: true, Absent: false, Comment: 'Bus', MinutesLate: null },
      Learner: fixed.learner,
      AttendableEvent: fixed.morning,
      SchoolAttendanceCode: fixed.present,
    }
    const wrong = { ...flat, AttendableEvent: fixed.unknown, SchoolAttendanceCode: fixed.zero }
    const parts = [flat, wrong].map((body, index) =>
      [
        '--changeset_1',
        'Content-Type: application/http',
        'Content-Transfer-Encoding: binary',
        `Content-ID: ${index + 1}`,
        '',
        'POST /AttendanceServiceFarm1/OData/V1/AttendanceRecords HTTP/1.1',
        'Content-Type: application/json;odata.metadata=minimal',
        'Prefer: return=representation',
        'Accept: application/json;odata.metadata=minimal',
        'Accept-Charset: UTF-8',
        '',
        JSON.stringify(body),
      ].join('\r\n'),
    )
    const batch = [
      '--batch_1',
      'Content-Type: multipart/mixed; boundary=changeset_1',
      '',
      ...parts,
      '--changeset_1--',
      '--batch_1--',
      '',
    ].join('\r\n')
    const path = '/sp-api-write-back-partner-live/V2/Attendance/$batch'
    const headers = { 'Content-Type': 'multipart/mixed; boundary=batch_1' }
    expect((await call('POST', path, 'all-but-Attendance', batch, headers)).status).toBe(403)
    const { status, text } = await call('POST', path, 'only-Attendance', batch, headers)
    expect(status).toBe(200)
    expect(text.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 201', 'HTTP/1.1 400'])
    const [errors] = /\[\{.*\}\]/.exec(text) ?? ['[]']
    const sequence = expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown
    expect(JSON.parse(errors)).toEqual(
      ['ATT_VAL_2', 'ATT_VAL_3'].map((ErrorCode) => ({
        Message: expect.any(String) as unknown,
        ErrorCode,
        ResourceIdentifier: '',
        SequenceID: sequence,
      })),
    )
  })

  test('codes are lookups, also of three characters (service-facts 7)', async () => {
    const found = await list('/Attendance/V3/AttendanceLookups?$filter=length(Code)%20eq%203')
    expect(found.length).toBeGreaterThan(0)
    const guid = expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown
    for (const lookup of found)
      expect(lookup).toEqual({
        ExternalID: guid,
        LookupType: 'AttendanceCode',
        Code: expect.stringMatching(/^[A-Z]\d\d$/) as unknown,
        Description: expect.any(String) as unknown,
        DisplayOrder: expect.any(Number) as unknown,
        IsVisible: expect.any(Boolean) as unknown,
        ResourceProvider: expect.objectContaining({ ExternalID: guid }) as unknown,
        StatutoryAttendanceCode: { ExternalID: guid, Type: 'Attendance.Lookup.StatutoryAttendanceCode' },
      })
  })
})
