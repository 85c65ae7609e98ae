import { expect, test } from 'vitest'
import { createSandbox } from '../../../src/sandbox/index.ts'
import { batchOf } from '../../support/batch-request.ts'
import { fixed, jsonBody, startSandbox, testNow } from '../start-sandbox.ts'

type Started = Awaited<ReturnType<typeof startSandbox>>
type Row = Readonly<Record<string, unknown>>
interface Listed {
  readonly learner: string
  readonly event: string
  readonly externalId: string
  readonly kind: string
  readonly rows: { readonly stored: number; readonly shown: number }
  readonly fields: readonly { readonly path: string; readonly stored: unknown; readonly shown?: unknown }[]
}

const fromTo = { from: '2026-03-02', to: '2026-03-04' }
const range = 'AttendableEventStart ge 2026-02-28T00:00:00Z and AttendableEventStart lt 2026-03-05T00:00:00Z'
const paths = { V2: '/V2/Attendance/AttendanceRecords', V3: '/Attendance/V3/AttendanceRecords' }

async function put({ json }: Started, plan: object): Promise<readonly Listed[]> {
  const { status, body } = await json('PUT', '/_sandbox/differences', {
    headers: jsonBody,
    body: JSON.stringify(plan),
  })
  expect([status, body]).toEqual([200, expect.any(Array)])
  return body as readonly Listed[]
}

/** Every page of a read. */
async function read({ json, url }: Started, face: 'V2' | 'V3', options: string): Promise<Row[]> {
  const rows: Row[] = []
  let path: string | undefined = `${paths[face]}?${options}`
  while (path !== undefined) {
    const { status, body } = await json('GET', path)
    expect([path, status]).toEqual([path, 200])
    const page = body as { readonly value: readonly Row[]; readonly '@odata.nextLink'?: string }
    rows.push(...page.value)
    path = page['@odata.nextLink']?.slice(url.length)
  }
  return rows
}

const all = (started: Started, face: 'V2' | 'V3', more = ''): Promise<Row[]> =>
  read(started, face, `$filter=${encodeURIComponent(range)}${more}`)

const at = (row: Row): string => `${String(row['Learner'])} ${String(row['AttendableEvent'])}`

/** Marks with comments, a few of them with blanks around. */
async function comment({ json }: Started): Promise<void> {
  const { body } = await json('GET', '/_sandbox/samples')
  const { learners, events } = body as { learners: string[]; events: string[] }
  for (const [index, learner] of learners.slice(0, 12).entries()) {
    const mark = {
      Learner: learner,
      AttendableEvent: events[index % 6],
      SchoolAttendanceCode: fixed.present,
      Present: true,
      Absent: false,
      Comment: index % 2 === 0 ? ` note ${index} ` : `note ${index}`,
      MinutesLate: index,
    }
    const reply = await json('POST', paths.V2, { headers: jsonBody, body: JSON.stringify(mark) })
    expect(reply.status).toBe(201)
  }
}

test.each([['V2'], ['V3']] as const)('%s differs in the listed rows, and in no others', async (face) => {
  const started = await startSandbox()
  await comment(started)
  const kinds = ['recordedOn', 'commentCut', 'commentTrimmed', 'commentOther', 'code', 'present', 'absent']
  const more = ['minutesNull', 'minutesZero', 'process', 'recordedBy', 'id', 'start']
  const before = await all(started, 'V2')
  const listed = await put(started, { face, seed: 3, count: 26, kinds: [...kinds, ...more], ...fromTo })
  expect(listed).toHaveLength(26)
  const fields = (row: Row): unknown => ({
    ...row,
    AttendanceHistorys: undefined,
    ...Object.fromEntries(
      (listed.find((one) => `${one.learner} ${one.event}` === at(row))?.fields ?? []).map(
        ({ path, stored, shown }) => {
          expect([row[path], path]).toEqual([face === 'V2' ? shown : stored, path])
          return [path, stored]
        },
      ),
    ),
  })
  const after = await all(started, 'V2')
  expect(after.map(fields)).toEqual(before.map((row) => ({ ...row, AttendanceHistorys: undefined })))
  if (face === 'V3') expect(after).toEqual(before)
  expect(await started.json('DELETE', '/_sandbox/differences')).toEqual({ status: 204, body: undefined })
  expect((await started.json('GET', '/_sandbox/differences')).body).toEqual([])
  expect(await all(started, 'V2')).toEqual(before)
})

test('a seed draws the same rows in another process', async () => {
  const plan = {
    face: 'V3',
    seed: 9,
    count: 20,
    kinds: ['code', 'missing', 'doubled', 'order', 'start'],
    ...fromTo,
  }
  const [one, other] = [await startSandbox(), await startSandbox()]
  const listed = await put(one, plan)
  expect(await put(other, plan)).toEqual(listed)
  expect(await put(other, { ...plan, seed: 10 })).not.toEqual(listed)
})

test.each([['missing'], ['extra'], ['doubled'], ['order']])(
  '%s keeps pages, counts and keys whole',
  async (kind) => {
    const started = await startSandbox({ pageSize: 17 })
    const before = await all(started, 'V2')
    const listed = await put(started, {
      face: 'V2',
      seed: 5,
      count: 8,
      kinds: [kind],
      ...(kind === 'extra' ? { from: '2026-02-28', to: '2026-03-04' } : fromTo),
    })
    const after = await all(started, 'V2')
    const by = { missing: -8, extra: 8, doubled: 8, order: 0 }[kind] ?? NaN
    expect(after).toHaveLength(before.length + by)
    const count = await started.request('GET', `${paths.V2}/$count?$filter=${encodeURIComponent(range)}`)
    expect(Number(count.text)).toBe(after.length)
    for (const { learner, event, externalId, rows } of listed) {
      const named = `Learner eq ${learner} and AttendableEvent eq ${event}`
      expect(await read(started, 'V2', `$filter=${encodeURIComponent(named)}`)).toHaveLength(rows.shown)
      expect((await started.json('GET', `${paths.V2}(${externalId})`)).status).toBe(
        rows.shown === 0 ? 404 : 200,
      )
    }
    const top = await all(started, 'V2', '&$top=20')
    expect(top).toEqual(after.slice(0, 20))
    const sorted = (rows: readonly Row[]): string[] => rows.map(at).toSorted()
    if (kind === 'order') {
      expect(after).not.toEqual(before)
      expect(sorted(after)).toEqual(sorted(before))
      expect(await all(started, 'V2', '&$orderby=Learner,AttendableEventStart')).toEqual(
        before.toSorted(byKey),
      )
    }
  },
)

const byKey = (one: Row, other: Row): number =>
  `${String(one['Learner'])}${String(one['AttendableEventStart'])}` <
  `${String(other['Learner'])}${String(other['AttendableEventStart'])}`
    ? -1
    : 1

test('another form of a value is shown, and filters see the value', async () => {
  const started = await startSandbox()
  await comment(started)
  const chosen = { learner: fixed.learner, event: fixed.morning }
  const rows = ['guidCase', 'timeOffset', 'nullMissing', 'history'].map((kind) => ({ ...chosen, kind }))
  const named = (learner: string, event: string): string =>
    `$filter=${encodeURIComponent(`${learner} eq ${fixed.learner} and ${event} eq ${fixed.morning}`)}`
  const [before = {}] = await read(started, 'V2', named('Learner', 'AttendableEvent'))
  await put(started, { face: 'V2', rows })
  const [v2 = {}] = await read(started, 'V2', named('Learner', 'AttendableEvent'))
  expect(v2).toMatchObject({
    Learner: fixed.learner.toUpperCase(),
    SchoolAttendanceCode: fixed.present.toUpperCase(),
    AttendableEventStart: '2026-03-02T10:00:00+01:00',
  })
  expect(Object.keys(v2)).toEqual(Object.keys(before).filter((name) => name !== 'ChangeProcessName'))
  expect((v2['AttendanceHistorys'] as unknown[]).length).toBe(
    (before['AttendanceHistorys'] as unknown[]).length + 1,
  )
  await put(started, { face: 'V3', rows: [...rows, { ...chosen, kind: 'minutesText' }] })
  const [v3 = {}] = await read(started, 'V3', named('Attendee/ExternalID', 'Event/ExternalID'))
  expect(v3).toMatchObject({
    Attendee: { ExternalID: fixed.learner.toUpperCase() },
    Event: { ExternalID: fixed.morning.toUpperCase() },
    Qualifier: { MinutesLate: '0' },
  })
  expect(v3).not.toHaveProperty('ChangeProcessName')
})

test('a write of one face is seen late on the other, and at once on its own', async () => {
  const started = await startSandbox()
  await put(started, { face: 'V3', late: { delayMs: 300 } })
  const chosen = `Attendee/ExternalID eq ${fixed.learner} and Event/ExternalID eq ${fixed.morning}`
  const comments = async (): Promise<unknown> =>
    (await read(started, 'V3', `$filter=${encodeURIComponent(chosen)}`)).map((row) => row['Qualifier'])
  const mark = {
    ...{ Learner: fixed.learner, AttendableEvent: fixed.morning, SchoolAttendanceCode: fixed.present },
    ...{ Present: true, Absent: false, Comment: 'seen', MinutesLate: null },
  }
  const before = await comments()
  await started.json('POST', paths.V2, { headers: jsonBody, body: JSON.stringify(mark) })
  expect(await comments()).toEqual(before)
  const own = `Learner eq ${fixed.learner} and AttendableEvent eq ${fixed.morning}`
  expect(await read(started, 'V2', `$filter=${encodeURIComponent(own)}`)).toMatchObject([{ Comment: 'seen' }])
  expect((await started.json('GET', '/_sandbox/differences')).body).toMatchObject([
    { learner: fixed.learner, event: fixed.morning, kind: 'late', face: 'V3', delayMs: 300 },
  ])
  await expect.poll(comments, { interval: 20 }).toEqual([{ Comment: 'seen', MinutesLate: null }])
})

test('the log of writes and the store know no differences', async () => {
  const started = await startSandbox()
  await comment(started)
  const effects = await started.json('GET', '/_sandbox/effects')
  await put(started, {
    face: 'V2',
    rows: [{ learner: fixed.learner, event: fixed.morning, kind: 'missing' }],
  })
  expect(await started.json('GET', '/_sandbox/effects')).toEqual(effects)
  expect((await started.request('POST', '/_sandbox/reset')).status).toBe(204)
  expect((await started.json('GET', '/_sandbox/differences')).body).toEqual([])
})

test.each([
  [{}, ['face']],
  [{ face: 'V1', count: -1 }, ['face', 'count']],
  [{ face: 'V2', kinds: ['late'] }, ['kinds.0']],
  [{ face: 'V2', more: 1 }, ['']],
  [
    { face: 'V2', rows: [{ learner: fixed.unknown, event: fixed.morning, kind: 'code' }] },
    ['rows.0.learner'],
  ],
  [{ face: 'V2', rows: [{ learner: fixed.learner, event: fixed.unknown, kind: 'code' }] }, ['rows.0.event']],
])('%j is refused at %j', async (plan, targets) => {
  const { json } = await startSandbox()
  const { status, body } = await json('PUT', '/_sandbox/differences', {
    headers: jsonBody,
    body: JSON.stringify(plan),
  })
  const { error } = body as { error: { details: readonly { target: string }[] } }
  expect([status, error.details.map(({ target }) => target)]).toEqual([400, targets])
})

test('more rows than there are cannot be drawn', async () => {
  const { json } = await startSandbox()
  const plan = { face: 'V2', count: 10, kinds: ['commentCut'] }
  const reply = await json('PUT', '/_sandbox/differences', { headers: jsonBody, body: JSON.stringify(plan) })
  expect(reply).toMatchObject({ status: 400, body: { error: { code: 'ADP_USAGE' } } })
})

test('without control there are no differences', async () => {
  const sandbox = createSandbox({ now: testNow, control: false })
  const { url } = await sandbox.listen()
  const reply = await fetch(`${url}/_sandbox/differences`)
  await sandbox.close()
  expect(reply.status).not.toBe(200)
})

test('the reply to a batch differs in the parts that were named', async () => {
  const started = await startSandbox()
  const good = {
    ...{ Learner: fixed.learner, AttendableEvent: fixed.morning, SchoolAttendanceCode: fixed.present },
    ...{ Present: true, Absent: false, MinutesLate: null, Comment: 'as sent' },
  }
  const records = [
    good,
    { ...good, AttendableEvent: fixed.unknown },
    { ...good, AttendableEvent: fixed.afternoon },
  ]
  const batch = batchOf(records.map((record) => JSON.stringify(record)))
  const post = async (): Promise<string[]> => {
    const { text } = await started.request('POST', '/V2/Attendance/$batch', batch)
    return text.split('Content-Type: application/http\r\n').slice(1)
  }
  const before = await post()
  const reply = [
    { kind: 'status', part: 1 },
    { kind: 'comment', part: 1 },
    { kind: 'errorCode', part: 2 },
    { kind: 'contentId', part: 3 },
    { kind: 'last', part: 1 },
  ]
  await put(started, { face: 'V2', reply })
  const after = await post()
  expect(before[1]).toContain('"ErrorCode":"ATT_VAL_2"')
  expect(after[0]).toContain('"ErrorCode":"ATT_VAL_29"')
  const [id] = /Content-ID: .*/.exec(before[2] ?? '') ?? []
  expect(after[1]).toContain(`${String(id)}0\r\n`)
  expect(after[2]).toContain('HTTP/1.1 202 Accepted')
  expect(after[2]).toContain('"Comment":"as sent#"')
  const effects = (await started.json('GET', '/_sandbox/effects')).body as { comment: string }[]
  expect(new Set(effects.map((one) => one.comment))).toEqual(new Set(['as sent']))
})
