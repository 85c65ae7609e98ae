import { describe, expect, it } from 'vitest'

import { sampleMark, sandboxHeaders, startSandbox } from '../sandbox/start-sandbox.ts'
import { created, failuresOf, postRecords } from '../support/batch-request.ts'
import { atEndOfFile } from '../support/end-of-file.ts'
import { onePartner, startAdapter } from '../support/start-adapter.ts'

const COUNT = 40
const FEW = 10
/** A time that each of the rules for times below changes. */
const now = '2026-06-10T10:00:31.754Z'

const sandbox = startSandbox({ now }, atEndOfFile())

/** Builds marks whose values the rules below change. */
async function marksOf(count: number) {
  const samples = await (await sandbox).samples()
  return Array.from({ length: count }, (_, index) =>
    sampleMark(samples, index % 20, {
      AttendableEvent: samples.events[index < 20 ? 2 : 3],
      MinutesLate: index % 2 === 0 ? null : index,
      Comment: index % 3 === 0 ? null : ` no. ${index} \r\n e\u0301t\u00e9  ${'long '.repeat(12)}`,
    }),
  )
}

const rules: readonly (readonly [string, object])[] = [
  ['stores all values as posted', {}],
  ['cuts times to seconds', { times: 'seconds' }],
  ['rounds times to seconds', { times: 'roundSeconds' }],
  ['rounds times like SQL datetime', { times: 'sqlDatetime' }],
  ['cuts times to minutes', { times: 'minutes' }],
  ['rounds times to minutes', { times: 'roundMinutes' }],
  ['stamps its own time', { clock: 'server' }],
  ['stamps its own time, an hour ahead', { clock: 'server', offsetMs: 3_600_000 }],
  ['stamps its own time, an hour behind', { clock: 'server', offsetMs: -3_600_000 }],
  ['trims comments', { comments: ['trim'] }],
  ['cuts comments', { comments: [{ cut: 20 }] }],
  ['cuts and trims comments', { comments: [{ cut: 9 }, 'trim'] }],
  ['composes characters', { comments: ['nfc'] }],
  ['decomposes characters', { comments: ['nfd'] }],
  ['changes CRLF to LF', { comments: ['crlfToLf'] }],
  ['changes LF to CRLF', { comments: ['lfToCrlf'] }],
  ['collapses white space', { comments: ['collapse'] }],
  ['stores null as 0 and ""', { nulls: ['minutesLateToZero', 'commentToEmpty'] }],
  ['stores "" and 0 as null', { nulls: ['zeroToNull', 'emptyToNull'] }],
  ['combines several such rules with a clock two hours behind', { times: 'seconds', clock: 'server', offsetMs: -7_200_000, comments: ['trim', 'nfc', 'crlfToLf'], nulls: ['minutesLateToZero', 'commentToEmpty'] }],
] // prettier-ignore

/** Every third rule, for the tests of batches, of minimal bodies and of replies that repeat the posted values. */
const someRules = rules.filter((_, index) => index % 3 === 2)

interface Losing {
  readonly count: number
  readonly v3: object
  /** Text that occurs in the path of the calls that V3 applies but does not answer. */
  readonly path?: string
  /** The number of marks that V3 answers before it begins to lose replies. The default is 0. */
  readonly answered?: number
}

/** Posts marks that V3 applies but does not answer. Returns the outcomes that the client gets and the number of writes. */
async function lose(values: object, { count, v3, path = 'AttendanceRecords', answered = 0 }: Losing) {
  const { url, request, put, effects } = await sandbox
  await request('POST', '/_sandbox/reset')
  expect((await put('values', values)).status).toBeLessThan(300)
  const partner = onePartner({ v3: { readBackAfterMs: [5, 10, 20], ...v3 } })
  const adapter = await startAdapter(url, partner, { nowMs: () => Date.parse(now) - 3 })
  const marks = await marksOf(answered + count)
  const send = async (some: object[]): Promise<unknown> =>
    failuresOf(await postRecords(adapter, some, sandboxHeaders))
  if (answered > 0) await send(marks.slice(0, answered))
  await put('faults', [{ method: 'POST', kind: 'reset', apply: true, path, count }])
  const answers = await send(marks.slice(answered))
  return { answers, written: (await effects()).length - answered }
}

const once = (count: number): unknown => ({
  answers: created(count),
  written: count,
})

describe('a mark whose write lost its reply', () => {
  it.each(rules)('is found by read-back after a single post, on a service that %s', async (_what, values) => {
    expect(await lose(values, { count: COUNT, v3: { writeMode: 'single' } })).toEqual(once(COUNT))
  })

  it.each(rules)(
    'is found by read-back, once V3 has answered other records, on a service that %s',
    async (_what, values) => {
      const v3 = { writeMode: 'single' }
      expect(await lose(values, { count: FEW, v3, answered: FEW })).toEqual(once(FEW))
    },
  )

  it.each(someRules)(
    'is found by read-back on a service whose replies repeat the posted values and that %s',
    async (_what, values) => {
      const repeating = { ...values, echo: 'posted' }
      const v3 = { writeMode: 'single' }
      expect(await lose(repeating, { count: FEW, v3, answered: FEW })).toEqual(once(FEW))
    },
  )

  it('is found by read-back on a service that stores its own time, three days behind, even if its replies repeat the posted values', async () => {
    const behind = { clock: 'server', offsetMs: -3 * 86_400_000, echo: 'posted', comments: ['trim'] }
    const v3 = { writeMode: 'single' }
    for (const answered of [0, FEW])
      expect(await lose(behind, { count: FEW, v3, answered })).toEqual(once(FEW))
  })

  it.each(someRules)(
    'is found by read-back after a post in a V3 batch, on a service that %s',
    async (_what, values) => {
      expect(await lose(values, { count: FEW, v3: { writeMode: 'batch' }, path: '$batch' })).toEqual(
        once(FEW),
      )
    },
  )

  it.each(someRules)(
    'is found by read-back after a post of the minimal body, on a service that %s',
    async (_what, values) => {
      const v3 = { writeMode: 'single', bodyProfile: 'minimal' }
      expect(await lose(values, { count: FEW, v3 })).toEqual(once(FEW))
    },
  )
})
