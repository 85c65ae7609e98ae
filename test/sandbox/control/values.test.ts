import { expect, test } from 'vitest'
import { jsonOf, nestedMark, ownMark, recordsOf, oneSandbox } from '../start-sandbox.ts'

const cleanSandbox = oneSandbox()

const path = recordsOf.V3
type Started = Awaited<ReturnType<typeof cleanSandbox>>
interface Shown {
  readonly RecordedOn: string
  readonly Qualifier: { readonly MinutesLate: number | null; readonly Comment: string | null }
}

const write = async ({ json }: Started, Qualifier: object, RecordedOn?: string): Promise<Shown> => {
  const reply = await json('POST', path, jsonOf(nestedMark({ RecordedOn, Qualifier })))
  expect(reply.status).toBe(201)
  return reply.body as Shown
}

const read = async ({ json }: Started): Promise<Shown> => {
  const reply = await json('GET', `${path}?$filter=${ownMark.V3}`)
  const [row, ...more] = (reply.body as { value: readonly Shown[] }).value
  if (row === undefined || more.length > 0) throw new Error('One row is expected.')
  return row
}

test.each([
  [{}, '2026-03-02T09:00:31.254Z'],
  [{ times: 'seconds' }, '2026-03-02T09:00:31Z'],
  [{ times: 'roundSeconds' }, '2026-03-02T09:00:31Z'],
  [{ times: 'sqlDatetime' }, '2026-03-02T09:00:31.253Z'],
  [{ times: 'minutes' }, '2026-03-02T09:00:00Z'],
  [{ times: 'roundMinutes' }, '2026-03-02T09:01:00Z'],
  [{ clock: 'server', offsetMs: 90_000 }, '2026-06-10T10:01:30Z'],
  [{ clock: 'server', offsetMs: -90_000, times: 'minutes' }, '2026-06-10T09:58:00Z'],
])('the sandbox with the rules %j stores RecordedOn as %s', async (rules, stored) => {
  const sandbox = await cleanSandbox()
  await sandbox.put('values', rules)
  const echoed = await write(sandbox, {}, '2026-03-02T09:00:31.254Z')
  expect([echoed.RecordedOn, (await read(sandbox)).RecordedOn]).toEqual([stored, stored])
})

test.each([
  [{}, { MinutesLate: 0, Comment: ' a  b\r\n' }, { MinutesLate: 0, Comment: ' a  b\r\n' }],
  [{ comments: ['trim'] }, { Comment: ' a b ' }, { Comment: 'a b' }],
  [{ comments: ['trimEnd'] }, { Comment: ' a b ' }, { Comment: ' a b' }],
  [{ comments: [{ cut: 3 }] }, { Comment: 'abcd' }, { Comment: 'abc' }],
  [{ comments: ['collapse'] }, { Comment: 'a \n b' }, { Comment: 'a b' }],
  [{ comments: ['nfc'] }, { Comment: 'e\u0301' }, { Comment: '\u00e9' }],
  [{ comments: ['nfd'] }, { Comment: '\u00e9' }, { Comment: 'e\u0301' }],
  [{ comments: ['crlfToLf'] }, { Comment: 'a\r\nb\nc' }, { Comment: 'a\nb\nc' }],
  [{ comments: ['lfToCrlf'] }, { Comment: 'a\r\nb\nc' }, { Comment: 'a\r\nb\r\nc' }],
  [{ comments: [{ cut: 3 }, 'trim'] }, { Comment: 'ab c' }, { Comment: 'ab' }],
  [
    { nulls: ['minutesLateToZero', 'commentToEmpty'] },
    { MinutesLate: null, Comment: null },
    { MinutesLate: 0, Comment: '' },
  ],
  [
    { nulls: ['zeroToNull', 'emptyToNull'] },
    { MinutesLate: 0, Comment: '' },
    { MinutesLate: null, Comment: null },
  ],
])('the sandbox with the rules %j stores the values %j as %j', async (rules, posted, stored) => {
  const sandbox = await cleanSandbox()
  await sandbox.put('values', rules)
  const echoed = await write(sandbox, posted)
  expect(echoed.Qualifier).toMatchObject(stored)
  expect((await read(sandbox)).Qualifier).toMatchObject(stored)
})

test('the sandbox returns the posted values in the reply to a POST, and the stored values in reads', async () => {
  const sandbox = await cleanSandbox()
  await sandbox.put('values', {
    echo: 'posted',
    times: 'seconds',
    comments: ['trim'],
    nulls: ['minutesLateToZero'],
  })
  const posted = { MinutesLate: null, Comment: ' c ' }
  const echoed = await write(sandbox, posted, '2026-03-02T09:00:00.5Z')
  expect(echoed).toMatchObject({ RecordedOn: '2026-03-02T09:00:00.500Z', Qualifier: posted })
  expect(await read(sandbox)).toMatchObject({
    RecordedOn: '2026-03-02T09:00:00Z',
    Qualifier: { MinutesLate: 0, Comment: 'c' },
  })
})

test('the sandbox lists as effects the values that the client sent, rather than the stored values', async () => {
  const sandbox = await cleanSandbox()
  await sandbox.put('values', { comments: ['trim'], nulls: ['minutesLateToZero'] })
  await write(sandbox, { MinutesLate: null, Comment: ' c ' })
  expect(await sandbox.effects()).toMatchObject([{ minutesLate: null, comment: ' c ' }])
})

test('the sandbox replaces all rules for stored values at once, and removes the rules on reset', async () => {
  const { json, put } = await cleanSandbox()
  const before = await json('GET', '/_sandbox/values')
  await put('values', { times: 'seconds', comments: ['nfc'] })
  expect((await put('values', { clock: 'server' })).body).toEqual({
    ...(before.body as object),
    clock: 'server',
  })
  await json('POST', '/_sandbox/reset')
  expect(await json('GET', '/_sandbox/values')).toEqual(before)
})

test.each([
  [{ times: 'hours' }, 'times'],
  [{ comments: [{ cut: -1 }] }, 'comments.0.cut'],
  [{ unknown: 1 }, ''],
  [[], ''],
])('the sandbox rejects the invalid rules for stored values %j', async (rules, target) => {
  const reply = await (await cleanSandbox()).put('values', rules)
  expect(reply).toMatchObject({ status: 400, body: { error: { code: 'ADP_USAGE', details: [{ target }] } } })
})
