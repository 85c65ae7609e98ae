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
 * Replays a batch of three records that was begun for V2 once for each of `ends`, newest first. The times of receipt are 5, 4 and so on,
 * and all but the newest are superseded. Replies are erased unless `isKept`.
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
  'refuses a resent batch whose stored reply from V2 was erased (records with a part of their own: %s)',
  async (each) => {
    await expect(replay([replied(200)], each)).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
  },
)

it.each([
  ['posts a batch that V2 refused as a whole', replied(400), 'notApplied'],
  ['posts a batch that V2 was never sent', { kind: 'notSent' } as const, 'notApplied'],
  ['reads back a batch that V2 may have applied', { kind: 'lost' } as const, 'unknown'],
])('%s when the batch is resent to V3', async (_name, end, state) => {
  expect(await replay([end], 3)).toMatchObject({ records: [{ state }, { state }, { state }] })
})

const lost = { kind: 'lost' } as const
const notSent = { kind: 'notSent' } as const

it.each<[string, RelayEnd[], 'unknown' | 'notApplied', boolean, number]>([
  ['the older of two', [notSent, lost], 'unknown', true, 4],
  ['both of two', [lost, lost], 'unknown', false, 4],
  ['the second of three', [notSent, lost, notSent], 'unknown', true, 4],
  ['the newer of two', [lost, notSent], 'unknown', false, 5],
  ['neither of two', [notSent, notSent], 'notApplied', false, 5],
])(
  'uses the time and supersession of the oldest request that V2 may have applied: %s',
  async (_name, ends, state, superseded, receivedMs) => {
    const record = { state, superseded }
    expect(await replay(ends, 3)).toMatchObject({ receivedMs, records: [record, record, record] })
  },
)

it('treats a batch as possibly applied since the oldest known request if older requests are unknown', async () => {
  const replayed = await replay([notSent, notSent], 3, { isCut: true })
  expect(replayed).toMatchObject({ receivedMs: 4, records: Array(3).fill({ state: 'unknown' }) })
})

it('ignores a partly accepted reply if a later request may have been applied', async () => {
  const replayed = await replay([lost, replied(200), lost], 3, { isKept: true })
  expect(replayed).toMatchObject({ receivedMs: 5 })
})

it('refuses a batch whose reply was erased even if a later request was not sent', async () => {
  await expect(replay([notSent, replied(200)], 3)).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
})
