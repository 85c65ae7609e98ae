import { expect, test } from 'vitest'
import { fixed, jsonOf, nestedMark, oneSandbox, startSandbox } from '../start-sandbox.ts'

const cleanSandbox = oneSandbox()

const root = '/Attendance/V3'
const post = (MinutesLate: number, event = fixed.morning) =>
  jsonOf(nestedMark({ Event: { ExternalID: event }, Qualifier: { MinutesLate } }))
const rowsOf = (reply: { body: unknown }): unknown[] => (reply.body as { value: unknown[] }).value

test('the sandbox lists the attendance sessions with their ids and times', async () => {
  const { json } = await cleanSandbox()
  const filter = encodeURIComponent(
    "Start ge 2026-03-02T00:00:00Z and Start lt 2026-03-03T00:00:00Z and Session eq 'AM'",
  )
  const reply = await json('GET', `${root}/StatutoryAttendanceSessions?$filter=${filter}`)
  const session = {
    ExternalID: fixed.morning,
    Description: '2026-03-02 AM',
    Session: 'AM',
    Start: '2026-03-02T09:00:00Z',
    End: '2026-03-02T12:00:00Z',
    Type: 'Attendance.StatutoryAttendanceSession',
  }
  expect([reply.status, rowsOf(reply)]).toEqual([200, [session]])
  const single = await json('GET', `${root}/StatutoryAttendanceSessions(${fixed.morning})`)
  expect([single.status, single.body]).toEqual([200, expect.objectContaining(session)])
})

test('the sandbox lists attendance codes as a lookup, including codes of three characters', async () => {
  const { json } = await cleanSandbox()
  const reply = await json(
    'GET',
    `${root}/AttendanceLookups?$filter=Code%20in%20('I01','%23W')&$orderby=Code%20desc`,
  )
  expect(rowsOf(reply)).toMatchObject([
    {
      LookupType: 'AttendanceCode',
      Code: 'I01',
      Description: 'Illness, sent home',
      IsVisible: true,
      ResourceProvider: { Code: 'SCH' },
      StatutoryAttendanceCode: { Type: 'Attendance.Lookup.StatutoryAttendanceCode' },
    },
    { Code: '#W' },
  ])
  const key = `ExternalID=${fixed.present},LookupType=SIMS.LookupType'AttendanceCode'`
  const single = await json('GET', `${root}/AttendanceLookups(${encodeURIComponent(key)})`)
  expect(single).toMatchObject({ status: 200, body: { Code: '/' } })
  expect((await json('GET', `${root}/AttendanceLookups(${fixed.present})`)).status).toBe(404)
})

test('the sandbox returns the changes that clients of V2 and V3 made since a date', async () => {
  const { json } = await cleanSandbox()
  const changes = (name: string, start: string) =>
    json('GET', `${root}/${name}/SIMS.Changes(startDate=${start})`)
  expect(rowsOf(await changes('AttendanceRecords', '2026-06-10T10:00:00Z'))).toEqual([])
  expect(rowsOf(await changes('AttendanceRecords', '2026-06-09'))).toHaveLength(60)
  await json('POST', `${root}/AttendanceRecords`, post(1))
  await json('POST', `${root}/AttendanceRecords`, post(2))
  expect(rowsOf(await changes('AttendanceRecords', '2026-06-10T10:00:00Z'))).toMatchObject([
    { Qualifier: { MinutesLate: 2 } },
  ])
  // The history has two rows for each write: the state before the write and the state after it.
  expect(rowsOf(await changes('StatutoryAttendanceRecordHistorys', '2026-06-10T10:00:00Z'))).toMatchObject([
    { Qualifier: { MinutesLate: null } },
    { Qualifier: { MinutesLate: 1 } },
    { Qualifier: { MinutesLate: 1 } },
    { Qualifier: { MinutesLate: 2 } },
  ])
  expect(rowsOf(await changes('StatutoryAttendanceRecordHistorys', '2026-06-10T11:00:00Z'))).toEqual([])
  const all = await json(
    'GET',
    `${root}/StatutoryAttendanceRecordHistorys?$filter=Qualifier/MinutesLate%20eq%201`,
  )
  expect(new Set(rowsOf(all).map((row) => (row as Record<string, unknown>)['ExternalID'])).size).toBe(2)
})

test('the sandbox returns changes in pages, and generated changes before later writes', async () => {
  const { json, url } = await startSandbox({ pageSize: 25 })
  await json('POST', `${root}/AttendanceRecords`, post(1))
  await json('POST', `${root}/AttendanceRecords`, post(2, fixed.afternoon))
  const ids: unknown[] = []
  let next: string | undefined = `${root}/AttendanceRecords/SIMS.Changes(startDate=2026-06-09)?$count=true`
  const sizes: number[] = []
  while (next !== undefined) {
    const { body } = await json('GET', next.replace(url, ''))
    const page = body as {
      value: { ExternalID: string }[]
      '@odata.nextLink'?: string
      '@odata.count'?: number
    }
    if (sizes.length === 0) expect(page['@odata.count']).toBe(62)
    sizes.push(page.value.length)
    ids.push(...page.value.map(({ ExternalID }) => ExternalID))
    next = page['@odata.nextLink']
  }
  expect(sizes).toEqual([25, 25, 12])
  expect(new Set(ids).size).toBe(62)
})

test.each([
  ['GET', 'AttendanceRecords/SIMS.Changes(startDate=2026-06-09)?$orderby=RecordedOn', 400],
  ['POST', 'AttendanceRecords/SIMS.Changes(startDate=2026-06-09)', 405],
  ['GET', 'AttendanceRecords/SIMS.Changes(since=2026-06-09)', 400],
  ['GET', 'AttendanceRecords/SIMS.Other(startDate=2026-06-09)', 404],
  ['GET', 'StatutoryAttendanceSessions/SIMS.Changes(startDate=2026-06-09)', 404],
  ['GET', 'Nothing', 404],
  ['GET', 'AttendanceRecords/Attendee', 404],
  ['GET', 'AttendanceRecords((', 404],
  ['PUT', 'AttendanceRecords', 405],
  ['DELETE', `AttendanceRecords(${fixed.zero})`, 405],
  ['POST', 'StatutoryAttendanceSessions', 405],
] as const)('the sandbox answers %s %s with %i', async (method, path, status) => {
  const { json } = await cleanSandbox()
  expect(await json(method, `${root}/${path}`)).toMatchObject({ status, body: { error: {} } })
})
