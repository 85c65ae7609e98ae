import { expect, test } from 'vitest'
import { codeDefinitions } from '../../../src/sandbox/seed/codes.ts'
import { fixed, jsonOf, nestedMark, recordsOf, oneSandbox, startSandbox } from '../start-sandbox.ts'

const cleanSandbox = oneSandbox()

const path = recordsOf.V3
const weeks = 'AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart lt 2026-03-16T00:00:00Z'
const one = `Attendee/ExternalID eq ${fixed.learner}`
const query = (options: Record<string, string>): string =>
  `${path}?${new URLSearchParams(options).toString()}`

interface Collection {
  '@odata.context': string
  '@odata.count'?: number
  '@odata.nextLink'?: string
  value: Record<string, unknown>[]
}
type Started = Awaited<ReturnType<typeof cleanSandbox>>
const read = async ({ json }: Started, options: Record<string, string>): Promise<Collection> => {
  const { status, body } = await json('GET', query(options))
  expect(status).toBe(200)
  return body as Collection
}

test('the sandbox returns every session in a range of dates with the code for its kind of day', async () => {
  const sandbox = await cleanSandbox()
  const { body } = await sandbox.json('GET', '/_sandbox/samples')
  const { codes } = body as { codes: { id: string; code: string }[] }
  const named = new Map(codes.map(({ id, code }) => [id, code]))
  expect(codes).toHaveLength(codeDefinitions.length)
  const { value } = await read(sandbox, {
    $filter: `${one} and ${weeks}`,
    $select: 'AttendanceCode,RecordedBy',
  })
  const rows = value as { AttendanceCode: { ExternalID: string }; RecordedBy: unknown }[]
  expect(rows).toHaveLength(28)
  expect(rows.map(({ AttendanceCode }) => named.get(AttendanceCode.ExternalID)).join(' ')).toBe(
    // The two weeks have marks up to the second Tuesday, an unmarked day, a closure, a training day, and weekends.
    '/ \\ / \\ / \\ / \\ / \\ #W #W #W #W / \\ / \\ - - Y4 Y4 #T #T #W #W #W #W',
  )
  expect(rows.map(({ RecordedBy }) => RecordedBy === null)).toEqual([
    ...Array.from({ length: 10 }, () => false),
    ...Array.from({ length: 4 }, () => true),
    ...Array.from({ length: 4 }, () => false),
    ...Array.from({ length: 10 }, () => true),
  ])
})

test.each([
  ['/Attendance/V3/AttendanceRecords', `Attendee/ExternalID eq ${fixed.learner}`],
  ['/V2/Attendance/AttendanceRecords', `Learner eq ${fixed.learner}`],
])(
  'the sandbox interprets a date without a time in a filter on %s as midnight UTC',
  async (face, learner) => {
    const { json } = await cleanSandbox()
    const rows = async (from: string, to: string): Promise<unknown> => {
      const $filter = `${learner} and AttendableEventStart ge ${from} and ${to} gt AttendableEventStart`
      const { status, body } = await json('GET', `${face}?${new URLSearchParams({ $filter }).toString()}`)
      expect([status, (body as Collection).value.length]).toEqual([200, 4])
      return (body as Collection).value
    }
    expect(await rows('2026-03-02', '2026-03-04')).toEqual(
      await rows('2026-03-02T00:00:00Z', '2026-03-04T00:00:00Z'),
    )
  },
)

test('the sandbox finds a posted mark by learner and event, and by its id', async () => {
  const sandbox = await cleanSandbox()
  const mark = { Event: { ExternalID: fixed.afternoon }, Qualifier: { MinutesLate: 7, Comment: 'ä' } }
  const posted = await sandbox.json('POST', path, jsonOf(nestedMark(mark)))
  const { fabricated, '@odata.context': context, ...record } = posted.body as Record<string, unknown>
  expect([fabricated, context]).toEqual([
    null,
    `${sandbox.url}/Attendance/V3/$metadata#AttendanceRecords/$entity`,
  ])
  const { value } = await read(sandbox, { $filter: `${one} and Event/ExternalID eq ${fixed.afternoon}` })
  expect(value).toEqual([record])
  const single = await sandbox.json('GET', `${path}(${String(record['ExternalID'])})`)
  expect(single).toEqual({ status: 200, body: { '@odata.context': context, ...record } })
})

test('the sandbox returns the row of an unmarked session by its id, and 404 for an unknown id', async () => {
  const sandbox = await cleanSandbox()
  const wednesday = `${one} and AttendableEventStart eq 2026-03-11T09:00:00Z`
  const [row] = (await read(sandbox, { $filter: wednesday })).value
  const { status, body } = await sandbox.json('GET', `${path}(${String(row?.['ExternalID']).toUpperCase()})`)
  expect([status, body]).toEqual([200, expect.objectContaining(row ?? {})])
  expect((await sandbox.json('GET', `${path}(${fixed.unknown})`)).status).toBe(404)
})

test.each([
  ['no condition', undefined, 'FilterRequired'],
  ['no date and no id', 'Present eq true', 'DateRangeRequired'],
  ['a range without an end', 'AttendableEventStart ge 2026-03-02T00:00:00Z', 'DateRangeRequired'],
  [
    'two learners and no range',
    `Attendee/ExternalID in (${fixed.learner},${fixed.otherLearner})`,
    'DateRangeRequired',
  ],
  [
    'a range of 91 days',
    `${one} and AttendableEventStart ge 2026-01-01T00:00:00Z and AttendableEventStart lt 2026-04-02T00:00:00Z`,
    'DateRangeTooLong',
  ],
  ['ids of different kinds in an or', `Event/ExternalID eq ${fixed.morning} or ${one}`, 'DateRangeRequired'],
  ['a range on one side of an or', `${weeks} or Present eq true`, 'DateRangeRequired'],
  ['a negated learner', `not (${one})`, 'DateRangeRequired'],
  ['a field of V2', `Learner eq ${fixed.learner}`, 'InvalidQuery'],
])('the sandbox rejects a filter with %s', async (_name, filter, code) => {
  const { json } = await cleanSandbox()
  const reply = await json('GET', filter === undefined ? path : query({ $filter: filter }))
  expect(reply).toMatchObject({ status: 400, body: { error: { code } } })
})

test.each([
  [
    `${one} and AttendableEventStart ge 2026-01-01T00:00:00Z and AttendableEventStart le 2026-04-01T00:00:00Z`,
    180,
  ],
  [one, 730],
  [`${one} and AttendableEventStart ge 2026-03-02T00:00:00Z`, 366],
  [`Event/ExternalID eq ${fixed.morning}`, 30],
  // The following filters limit only roughly which rows the sandbox reads, so it must also apply the filter to each row.
  [
    `${weeks} and ${fixed.learner} eq Attendee/ExternalID and Attendee/ExternalID eq ${fixed.otherLearner}`,
    0,
  ],
  [
    `(Event/ExternalID eq ${fixed.morning} or Event/ExternalID eq ${fixed.afternoon}) and Present ne null`,
    60,
  ],
  [
    `${weeks} and (Attendee/ExternalID eq ${fixed.learner} or Attendee/ExternalID eq ${fixed.otherLearner})`,
    56,
  ],
  [`${weeks} and (${one} or Event/ExternalID eq ${fixed.morning})`, 57],
  [`${weeks} and not (${one}) and Attendee/ExternalID ne null`, 812],
  ['2026-03-02T09:00:00Z eq AttendableEventStart or AttendableEventStart eq 2026-03-03T09:00:00Z', 60],
  ['2026-03-02T00:00:00Z le AttendableEventStart and 2026-03-03T00:00:00Z gt AttendableEventStart', 60],
  [`Event/ExternalID eq ${fixed.morning} and AttendableEventStart ne 2026-03-02T09:00:00Z`, 0],
])('the sandbox accepts the filter %s, because it is narrow enough', async (filter, count) => {
  const sandbox = await cleanSandbox()
  const { '@odata.count': counted } = await read(sandbox, { $filter: filter, $count: 'true', $top: '0' })
  expect(counted).toBe(count)
})

test('the sandbox returns each row exactly once over all pages, for any $orderby', async () => {
  const sandbox = await startSandbox({ pageSize: 100 })
  const follow = async (options: Record<string, string>): Promise<[number[], unknown[]]> => {
    const sizes: number[] = []
    const ids: unknown[] = []
    let next: string | undefined = query(options)
    while (next !== undefined) {
      const { status, body } = await sandbox.json('GET', next.replace(sandbox.url, ''))
      expect(status).toBe(200)
      const page = body as Collection
      sizes.push(page.value.length)
      ids.push(...page.value.map((row) => row['ExternalID']))
      next = page['@odata.nextLink']
    }
    return [sizes, ids]
  }
  const [sizes, ids] = await follow({ $filter: weeks })
  expect(sizes).toEqual([100, 100, 100, 100, 100, 100, 100, 100, 40])
  expect(new Set(ids).size).toBe(840)
  const [ordered, orderedIds] = await follow({
    $filter: weeks,
    $orderby: 'AttendableEventStart desc,ExternalID',
  })
  expect(ordered).toEqual(sizes)
  expect([...orderedIds].sort()).toEqual([...ids].sort())
  expect((await follow({ $filter: weeks, $orderby: 'ExternalID' }))[1]).toEqual([...ids].sort())
  expect((await follow({ $filter: weeks, $top: '150', $skip: '30' }))[1]).toEqual(ids.slice(30, 180))
  expect((await follow({ $filter: weeks, $orderby: 'ExternalID', $top: '150' }))[0]).toEqual([100, 50])
})

test('the sandbox applies the page size of the client if it is smaller, and returns the count only on the first page', async () => {
  const sandbox = await cleanSandbox()
  const { status, body } = await sandbox.json('GET', query({ $filter: weeks, $count: 'true' }), {
    headers: { Prefer: 'odata.maxpagesize=5' },
  })
  const page = body as Collection
  expect([status, page.value.length, page['@odata.count']]).toEqual([200, 5, 840])
  expect(page['@odata.nextLink']).not.toContain('count')
})

test('the sandbox hides recent writes from a read under the fault staleRead', async () => {
  const sandbox = await cleanSandbox()
  const filter = { $filter: `${one} and Event/ExternalID eq ${fixed.morning}` }
  const before = await read(sandbox, filter)
  await sandbox.put('faults', { kind: 'staleRead', method: 'GET', count: 1 })
  await sandbox.json('POST', path, jsonOf(nestedMark({ Qualifier: { MinutesLate: 9 } })))
  expect(await read(sandbox, filter)).toEqual(before)
  expect((await read(sandbox, filter)).value).toMatchObject([{ Qualifier: { MinutesLate: 9 } }])
})

test('the sandbox returns all duplicate marks of a learner and session', async () => {
  const sandbox = await startSandbox({ onExisting: 'duplicate' })
  await sandbox.json('POST', path, jsonOf(nestedMark()))
  const { value } = await read(sandbox, { $filter: `${one} and Event/ExternalID eq ${fixed.morning}` })
  expect(value).toHaveLength(2)
})
