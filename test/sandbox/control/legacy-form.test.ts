import { randomUUID } from 'node:crypto'

import { expect, test } from 'vitest'

import { decodeBatchReply } from '../../../src/v2/index.ts'
import { batchOf, batchPath, flatRecord } from '../../support/batch-request.ts'
import { anyText, fixed, recordsOf, oneSandbox, startSandbox } from '../start-sandbox.ts'

const cleanSandbox = oneSandbox()

type Started = Awaited<ReturnType<typeof cleanSandbox>>

const mark = flatRecord(1, {
  ...{ Learner: fixed.learner, AttendableEvent: fixed.morning, SchoolAttendanceCode: fixed.present },
})
const unknown = { ...mark, AttendableEvent: fixed.unknown }

/** Posts a batch with a valid mark and a record with an unknown event. */
async function post({ request }: Started, headers: Record<string, string> = {}, boundary?: string) {
  const batch = batchOf([mark, unknown], boundary === undefined ? {} : { boundary })
  const reply = await request('POST', batchPath, {
    headers: { ...batch.headers, ...headers },
    body: batch.body,
  })
  const { parts } = decodeBatchReply(Buffer.from(reply.text), String(reply.headers['content-type']))
  return {
    layout: parts.some(({ changeset }) => changeset !== undefined) ? 'nested' : 'flat',
    types: parts.map(({ mime }) => mime.find(([name]) => /^content-type$/i.test(name))?.[1]),
    bodies: parts.map(({ body }) => JSON.parse(body) as unknown),
  }
}

test('the sandbox replies on V2 in the form of service.md by default and after a reset', async () => {
  const sandbox = await cleanSandbox()
  const { json } = sandbox
  const standard = {
    ...{ layout: 'flat', dataEnvelope: false, msgtypeResponse: false, mismatch: 'post', errorMessages: {} },
  }
  expect((await json('GET', '/_sandbox/legacy-form')).body).toEqual(standard)
  expect((await sandbox.put('legacy-form', { layout: 'nested' })).body).toEqual({
    ...standard,
    layout: 'nested',
  })
  expect((await post(sandbox)).layout).toBe('nested')
  await json('POST', '/_sandbox/reset')
  expect((await json('GET', '/_sandbox/legacy-form')).body).toEqual(standard)
  await sandbox.put('legacy-form', { layout: 'nested' })
  expect((await json('DELETE', '/_sandbox/legacy-form')).status).toBe(204)
  expect((await post(sandbox)).layout).toBe('flat')
})

test.each([
  [{}, 'flat'],
  [{ Accept: 'multipart/mixed' }, 'nested'],
  [{ 'OData-MaxVersion': '4.0' }, 'nested'],
  [{ Accept: 'application/json' }, 'flat'],
])(
  'the sandbox with the layout auto answers a request with the headers %o in the layout %s',
  async (headers, layout) => {
    const sandbox = await cleanSandbox()
    await sandbox.put('legacy-form', { layout: 'auto' })
    expect((await post(sandbox, headers)).layout).toBe(layout)
  },
)

test('the sandbox adds the configured msgtype, envelope and error messages to the reply of a batch', async () => {
  const sandbox = await cleanSandbox()
  await sandbox.put('legacy-form', {
    msgtypeResponse: true,
    dataEnvelope: true,
    errorMessages: { ATT_VAL_2: 'No event.' },
  })
  const { types, bodies } = await post(sandbox)
  expect(new Set(types)).toEqual(new Set(['application/http; msgtype=response']))
  expect(bodies).toMatchObject([
    { d: { Learner: fixed.learner } },
    [{ ErrorCode: 'ATT_VAL_2', Message: 'No event.' }],
  ])
})

test('the sandbox wraps the replies of reads in the configured envelope, with the member names of OData V2', async () => {
  const sandbox = await startSandbox({ pageSize: 1 })
  await sandbox.put('legacy-form', { dataEnvelope: true })
  const path = recordsOf.V2
  const filter = `Learner eq ${fixed.learner} and AttendableEventStart lt 2026-03-03T00:00:00Z and AttendableEventStart ge 2026-03-02T00:00:00Z`
  const page = await sandbox.json('GET', `${path}?$filter=${encodeURIComponent(filter)}&$count=true`)
  expect(page.body).toEqual({
    d: {
      '@odata.context': anyText,
      __count: '2',
      results: [expect.objectContaining({ Learner: fixed.learner })],
      __next: anyText,
    },
  })
  const { results, __next } = (page.body as { d: { results: { ExternalID: string }[]; __next: string } }).d
  const next = await sandbox.json('GET', __next.replace(sandbox.url, ''))
  expect(next.body).toMatchObject({ d: { results: [{ Learner: fixed.learner }] } })
  const one = await sandbox.json('GET', `${path}(${results[0]?.ExternalID ?? ''})`)
  expect(one.body).toMatchObject({ d: { Learner: fixed.learner } })
  const count = await sandbox.request('GET', `${path}/$count?$filter=${encodeURIComponent(filter)}`)
  expect(count.text).toBe('2')
  expect((await sandbox.json('GET', path)).body).not.toHaveProperty('d')
})

test.each([
  ['post', 1],
  ['drop', 0],
])(
  'the sandbox with mismatch=%s writes %i marks of a batch with differing ids, and returns a single 200',
  async (mismatch, marks) => {
    const sandbox = await cleanSandbox()
    await sandbox.put('legacy-form', { mismatch })
    expect((await post(sandbox, {}, `batch_${randomUUID()}`)).bodies).toEqual([])
    expect(await sandbox.effects()).toHaveLength(marks)
    await post(sandbox)
    expect(await sandbox.effects()).toHaveLength(marks + 1)
  },
)

test('the sandbox reports every error in an invalid setting of the V2 form, and changes no setting', async () => {
  const sandbox = await cleanSandbox()
  const { status, body } = await sandbox.put('legacy-form', { layout: 'round', mismatch: true, more: 1 })
  expect(status).toBe(400)
  expect((body as { error: { details: { target: string }[] } }).error).toMatchObject({
    code: 'ADP_USAGE',
    details: [{ target: 'layout' }, { target: 'mismatch' }, { target: '' }],
  })
  expect((await post(sandbox)).layout).toBe('flat')
})
