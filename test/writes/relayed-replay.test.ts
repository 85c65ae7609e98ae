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
 * Replays a batch of three records for which the adapter began one request to V2 for each of `ends`, newest first. The newest request was
 * received at 5 ms, the next at 4 ms and so on, and all but the newest are superseded. Replies are erased unless `isKept` is true.
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
  'replayRelayed refuses a resend if the stored reply of V2 was erased (records of the batch in the journal: %s)',
  async (each) => {
    await expect(replay([replied(200)], each)).rejects.toMatchObject({ code: 'ADP_RESULT_LOST' })
  },
)

it.each([
  ['returns a resent batch as not applied if V2 refused the batch as a whole', replied(400), 'notApplied'],
  [
    'returns a resent batch as not applied if it was never sent to V2',
    { kind: 'notSent' } as const,
    'notApplied',
  ],
  ['returns a resent batch as unknown if V2 may have applied it', { kind: 'lost' } as const, 'unknown'],
])('replayRelayed %s', async (_name, end, state) => {
  expect(await replay([end], 3)).toMatchObject({ records: [{ state }, { state }, { state }] })
})

const lost = { kind: 'lost' } as const
const notSent = { kind: 'notSent' } as const

it.each<[string, RelayEnd[], 'unknown' | 'notApplied', boolean, number]>([
  ['the older of two requests', [notSent, lost], 'unknown', true, 4],
  ['both of two requests', [lost, lost], 'unknown', false, 4],
  ['the second of three requests', [notSent, lost, notSent], 'unknown', true, 4],
  ['the newer of two requests', [lost, notSent], 'unknown', false, 5],
  ['neither of two requests', [notSent, notSent], 'notApplied', false, 5],
])(
  'replayRelayed returns the time of receipt and the state of the oldest request that V2 may have applied: %s',
  async (_name, ends, state, superseded, receivedMs) => {
    const record = { state, superseded }
    expect(await replay(ends, 3)).toMatchObject({ receivedMs, records: [record, record, record] })
  },
)

it('replayRelayed treats every record as possibly applied since the oldest known request if older requests are not known', async () => {
  const replayed = await replay([notSent, notSent], 3, { isCut: true })
  expect(replayed).toMatchObject({ receivedMs: 4, records: Array(3).fill({ state: 'unknown' }) })
})

it('replayRelayed ignores a stored reply if a later request may have been applied', async () => {
  const replayed = await replay([lost, replied(200), lost], 3, { isKept: true })
  expect(replayed).toMatchObject({ receivedMs: 5 })
})

it('replayRelayed refuses a batch whose reply was erased even if a later request was not sent', async () => {
  await expect(replay([notSent, replied(200)], 3)).rejects.toMatchObject({ code: 'ADP_RESULT_LOST' })
})
