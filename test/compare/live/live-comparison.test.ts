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

/** Creates a write that V2 accepted with a reply of about `bytes` bytes. */
function written(bytes: number): OfferedWrite {
  const record = flatRecord(1)
  const fields = ['Content-Type', 'application/json']
  const mark = { ...record, ExternalID: guid(9), Comment: 'x'.repeat(bytes) }
  return {
    ...{ client: { partner }, kind: 'record', served: 'v2', keys: [], target: '/V2/Attendance/AttendanceRecords' },
    request: { fields, body: Buffer.from(JSON.stringify(record)) },
    reply: { status: 201, reason: 'Created', fields, body: Buffer.from(JSON.stringify(mark)) },
    ...{ receivedMs: 0, durationMs: 0 },
  } as unknown as OfferedWrite // prettier-ignore
}

const never = new Promise<never>(() => undefined)

function createEngine(v3: () => Promise<{ readonly kind: 'unsent'; readonly reason: 'pace' }>) {
  const [clock, stopped] = [createManualClock(), new AbortController().signal]
  return createComparisonEngine({
    ...{ clock, stopped, limits: () => noBatchLimits, rulesOf: () => undefined, isContinued: () => false },
    share: createProcessorShare(clock, () => ({ own: 0, others: 0 }), stopped),
    ask: { v2: () => expect.fail('V2 is not asked'), v3 },
  })
}

it('live comparison skips the check of a write if the rate limit allows no call to V3', async () => {
  const engine = createEngine(() => Promise.resolve({ kind: 'unsent', reason: 'pace' }))
  expect(await engine.compare(written(10), 0, () => undefined)).toEqual({ kind: 'skipped', reason: 'pace' })
})

it('live comparison drops the check of a write if replies in comparison already use too much memory', async () => {
  const engine = createEngine(() => never)
  const compare = () => engine.compare(written(1_000_000), 0, () => undefined)
  for (let count = 0; count < 4; count += 1) void compare()
  expect(await compare()).toEqual({ kind: 'dropped', reason: 'full' })
})
