import { expect, test } from 'vitest'
import { fixed, flatMark, jsonOf, ownMark, recordsOf, oneSandbox } from '../start-sandbox.ts'

const cleanSandbox = oneSandbox()

type Started = Awaited<ReturnType<typeof cleanSandbox>>
const week = 'AttendableEventStart ge 2026-03-02T00:00:00Z and AttendableEventStart lt 2026-03-07T00:00:00Z'
const read = ({ rows }: Started, face: 'V2' | 'V3', filter = ownMark[face]) =>
  rows(`${recordsOf[face]}?$filter=${filter}`)

test.each([
  ['recordedOn', { RecordedOn: '2026-03-02T11:00:00Z' }],
  ['commentCut', { Comment: 'Hi 🚌' }],
  ['code', { SchoolAttendanceCode: expect.not.stringMatching(fixed.present) as unknown, Present: true }],
  ['id', { ExternalID: expect.any(String) as unknown }],
])(
  'the sandbox with the difference %s changes every V2 read of the mark, and no V3 read',
  async (kind, shown) => {
    const sandbox = await cleanSandbox()
    const record = jsonOf(flatMark({ Comment: 'Hi 🚌 late' }))
    await sandbox.json('POST', recordsOf.V2, record)
    await sandbox.put('clock', { now: '2026-03-02T10:00:00Z' })
    await sandbox.json('POST', recordsOf.V2, record)
    const [before] = await read(sandbox, 'V2')
    const [truth] = await read(sandbox, 'V3')
    const plan = { face: 'V2', rows: [{ learner: fixed.learner, event: fixed.morning, kind }] }
    expect(await sandbox.put('differences', plan)).toMatchObject({ status: 200, body: plan })
    const [after = {}] = await read(sandbox, 'V2')
    expect(after).toMatchObject(shown)
    expect(after).not.toEqual(before)
    const changed = Object.keys(after).filter((name) => after[name] !== before?.[name])
    expect(changed.filter((name) => name !== 'AttendanceHistorys')).toEqual(Object.keys(shown).slice(0, 1))
    const path = `${recordsOf.V2}(${String(after['ExternalID'])})`
    expect((await sandbox.json('GET', path)).body).toMatchObject(shown)
    expect(await read(sandbox, 'V3')).toEqual([truth])
    expect((await sandbox.json('DELETE', '/_sandbox/differences')).status).toBe(204)
    expect(await read(sandbox, 'V2')).toEqual([before])
  },
)

test('the sandbox with the difference "missing" leaves a mark out on V2, and shows the session as unmarked on V3', async () => {
  const sandbox = await cleanSandbox()
  const rows = [{ learner: fixed.learner, event: fixed.morning, kind: 'missing' }]
  await sandbox.put('differences', { face: 'V2', rows })
  expect(await read(sandbox, 'V2')).toEqual([])
  expect(await read(sandbox, 'V3')).toMatchObject([{ RecordedBy: expect.any(Object) as unknown }])
  await sandbox.put('differences', { face: 'V3', rows })
  expect(await read(sandbox, 'V2')).toHaveLength(1)
  expect(await read(sandbox, 'V3')).toMatchObject([{ RecordedBy: null }])
})

test('the sandbox changes the same marks in every read if only a share of all marks is to differ', async () => {
  const sandbox = await cleanSandbox()
  const before = await read(sandbox, 'V3', week)
  const differing = async (share: number): Promise<number[]> => {
    await sandbox.put('differences', { face: 'V3', share, kinds: ['recordedOn', 'code'] })
    const after = await read(sandbox, 'V3', week)
    return after.flatMap((row, at) => (JSON.stringify(row) === JSON.stringify(before[at]) ? [] : [at]))
  }
  const drawn = await differing(0.2)
  expect(drawn.length).toBeGreaterThan(20)
  expect(drawn.length).toBeLessThan(120)
  expect(await differing(0.2)).toEqual(drawn)
  await sandbox.json('POST', '/_sandbox/reset')
  expect(await read(sandbox, 'V3', week)).toEqual(before)
})

test.each([[{}], [{ face: 'V4' }], [{ face: 'V2', share: 2 }], [{ face: 'V2', kinds: ['odd'] }]])(
  'the sandbox rejects the invalid differences %j',
  async (plan) => {
    const sandbox = await cleanSandbox()
    expect(await sandbox.put('differences', plan)).toMatchObject({
      status: 400,
      body: { error: { code: 'ADP_USAGE' } },
    })
    expect((await sandbox.json('GET', '/_sandbox/differences')).body).toBeNull()
  },
)
