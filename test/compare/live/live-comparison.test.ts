import { expect, it } from 'vitest'

import { toPartners } from '../../../src/app/partners.ts'
import type { OfferedWrite } from '../../../src/compare/live/exchange.ts'
import { createComparisonEngine } from '../../../src/compare/live/live-comparison.ts'
import { createProcessorShare } from '../../../src/compare/processor-share.ts'
import { parseConfig } from '../../../src/config/index.ts'
import { noBatchLimits } from '../../../src/v2/index.ts'
import { flatRecord, guid } from '../../support/batch-request.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const [partner] = toPartners(
  parseConfig({
    upstreams: { v3: { baseUrl: 'http://127.0.0.1:1' }, v2: { baseUrl: 'http://127.0.0.1:2' } },
    partners: [{ id: 'acme', match: { any: true }, stage: 'shadow' }],
  }),
)

/** Creates a write that V2 accepted, whose mark has a history of `states` states. */
function written(states: number): OfferedWrite {
  const record = flatRecord(1)
  const fields = ['Content-Type', 'application/json']
  const mark = {
    ...record,
    ExternalID: guid(9),
    AttendanceHistorys: Array.from({ length: states }, () => ({})),
  }
  return {
    ...{ client: { partner }, kind: 'record', served: 'v2', keys: [], target: '/V2/Attendance/AttendanceRecords' },
    request: { fields, body: Buffer.from(JSON.stringify(record)) },
    reply: { status: 201, reason: 'Created', fields, body: Buffer.from(JSON.stringify(mark)) },
    ...{ receivedMs: 0, durationMs: 0 },
  } as unknown as OfferedWrite // prettier-ignore
}

it.each([
  [1, { kind: 'skipped', reason: 'pace' }],
  [20_000, { kind: 'dropped', reason: 'full' }],
])(
  'counts the history of a followed mark as memory: with %i states the check ends as %j',
  async (states, end) => {
    const [clock, stopped] = [createManualClock(), new AbortController().signal]
    const engine = createComparisonEngine({
      ...{ clock, stopped, limits: () => noBatchLimits, rulesOf: () => undefined, isContinued: () => false },
      share: createProcessorShare(clock, () => ({ own: 0, others: 0 }), stopped),
      ask: {
        v2: () => expect.fail('V2 is not asked'),
        v3: () => Promise.resolve({ kind: 'unsent', reason: 'pace' }),
      },
    })
    const events = { onBegun: () => undefined, onFailure: () => expect.fail() }
    const ends = await engine.compare(written(states), 0, events)
    expect(ends.get('reply')).toMatchObject({ kind: 'compared' })
    expect(ends.get('visible')).toEqual(end)
  },
)
