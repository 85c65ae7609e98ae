import { expect, it } from 'vitest'

import type { Authorisation } from '../../src/partners/partner.ts'
import type { WriteContext } from '../../src/writes/context.ts'
import type { Plan } from '../../src/writes/plan.ts'
import { replayRelayed } from '../../src/writes/relayed/replay-relayed.ts'
import { type RelayEnd, outcomesOf } from '../../src/writes/relayed/relayed-outcomes.ts'

const body = Buffer.from(
  [201, 400, 504]
    .map((status) => `--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 ${status} X\r\n\r\n{}\r\n`)
    .concat('--b--\r\n')
    .join(''),
)
const replied = (status: number): RelayEnd => ({
  kind: 'answered',
  reply: { status, reason: 'X', fields: ['Content-Type', 'multipart/mixed; boundary=b'], trailers: [], body },
})

function replay(end: RelayEnd, each?: number) {
  const outcomes = outcomesOf(end, 'batch', each)
  const records = outcomes.map((outcome) => ({
    ...outcome,
    answer: undefined,
    superseded: false,
    attempts: 1,
  }))
  const stored = { batch: 1, side: 'v2', receivedMs: 5, records }
  return replayRelayed(
    { journal: { load: () => Promise.resolve(stored) } } as unknown as WriteContext,
    { partner: { budgetMs: 1 } } as unknown as Authorisation,
    { records: [{}, {}, {}] } as unknown as Plan,
    1,
  )
}

it.each([[3], [2], [undefined]])(
  'a batch of V2 whose kept reply was erased is refused when it comes again (%s parts)',
  async (each) => {
    await expect(replay(replied(200), each)).rejects.toMatchObject({ code: 'ADP_JOURNAL_LOST' })
  },
)

it.each([
  ['refused as a whole is posted', replied(400), false],
  ['was not sent is posted', { kind: 'notSent' } as const, false],
  ['may have applied is read back', { kind: 'lost' } as const, true],
])('a batch without a reply that V2 %s when it comes again', async (_name, end, mayHaveLeft) => {
  const replayed = await replay(end, 3)
  expect(replayed.kind === 'lost' && [0, 1, 2].map(replayed.mayHaveLeft)).toEqual([
    mayHaveLeft,
    mayHaveLeft,
    mayHaveLeft,
  ])
})
