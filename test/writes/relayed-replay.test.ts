import { expect, it } from 'vitest'

import { createSlicing } from '../../src/http/slices.ts'
import type { Authorisation } from '../../src/partners/partner.ts'
import type { WriteContext } from '../../src/writes/context.ts'
import type { Plan } from '../../src/writes/plan.ts'
import { outcomesOf, type RelayEnd, replayRelayed } from '../../src/writes/relayed-reply.ts'

const body = Buffer.from(
  [201, 400, 504]
    .map((status) => `--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 ${status} X\r\n\r\n{}\r\n`)
    .concat('--b--\r\n')
    .join(''),
)
const replied = (status: number): RelayEnd => ({
  kind: 'answered',
  reply: { status, reason: 'X', fields: ['Content-Type', 'multipart/mixed; boundary=b'], body },
})

/**
 * How a batch of three records ended each time that it was begun for V2, the newest first; the times of receipt are 5, 4 and so on, and all
 * but the newest are superseded. Replies are erased, unless they are kept.
 */
async function replay(
  ends: readonly RelayEnd[],
  each?: number,
  { isCut = false, isKept = false }: { readonly isCut?: boolean; readonly isKept?: boolean } = {},
) {
  const slices = createSlicing().open()
  const outcomes = await Promise.all(ends.map((end) => outcomesOf(end, 'batch', each, { slices })))
  const stored = outcomes.map((own, index) => ({
    batch: ends.length - index,
    side: 'v2',
    receivedMs: 5 - index,
    records: own.map((outcome) => ({
      ...outcome,
      answer: isKept ? outcome.answer : undefined,
      superseded: index > 0,
      attempts: 1,
    })),
  }))
  const load = (batch: number) => Promise.resolve(stored.find((one) => one.batch === batch))
  return replayRelayed(
    { journal: { load }, clock: { nowMs: () => 0 } } as unknown as WriteContext,
    { partner: { budgetMs: 1 } } as unknown as Authorisation,
    { plan: { records: [1, 2, 3].map((key) => ({ key })) } as unknown as Plan, slices },
    { batch: ends.length, earlier: stored.slice(1).map(({ batch }) => batch), isCut },
  )
}

it.each([[3], [2], [undefined]])(
  'a batch of V2 whose kept reply was erased is refused when it comes again (%s parts)',
  async (each) => {
    await expect(replay([replied(200)], each)).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
  },
)

it.each([
  ['refused as a whole is posted', replied(400), 'notApplied'],
  ['was not sent is posted', { kind: 'notSent' } as const, 'notApplied'],
  ['may have applied is read back', { kind: 'lost' } as const, 'unknown'],
])('a batch without a reply that V2 %s when it comes again', async (_name, end, state) => {
  expect(await replay([end], 3)).toMatchObject({ records: [{ state }, { state }, { state }] })
})

const lost = { kind: 'lost' } as const
const notSent = { kind: 'notSent' } as const

it.each<[string, RelayEnd[], 'unknown' | 'notApplied', boolean, number]>([
  ['the first of two times', [notSent, lost], 'unknown', true, 4],
  ['both times', [lost, lost], 'unknown', false, 4],
  ['the second of three times', [notSent, lost, notSent], 'unknown', true, 4],
  ['the last time', [lost, notSent], 'unknown', false, 5],
  ['never', [notSent, notSent], 'notApplied', false, 5],
])(
  'a batch that may have left %s has that time, and is superseded as it was then',
  async (_name, ends, state, superseded, receivedMs) => {
    const record = { state, superseded }
    expect(await replay(ends, 3)).toMatchObject({ receivedMs, records: [record, record, record] })
  },
)

it('a batch that was begun for V2 more often than is known may have left, at the first known time', async () => {
  const replayed = await replay([notSent, notSent], 3, { isCut: true })
  expect(replayed).toMatchObject({ receivedMs: 4, records: Array(3).fill({ state: 'unknown' }) })
})

it('a reply that V2 did not take all of says nothing of a later request that may have left', async () => {
  const replayed = await replay([lost, replied(200), lost], 3, { isKept: true })
  expect(replayed).toMatchObject({ receivedMs: 5 })
})

it('an erased reply counts, whatever was sent later', async () => {
  await expect(replay([notSent, replied(200)], 3)).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
})
