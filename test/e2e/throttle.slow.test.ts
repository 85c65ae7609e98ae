import { describe, expect, it } from 'vitest'

import { startSandbox } from '../sandbox/start-sandbox.ts'
import {
  batchOf,
  created,
  failuresOf,
  flatRecord,
  flatRecords,
  outcomesOf,
  postBatch,
  postRecords,
} from '../support/batch-request.ts'
import { type Answer, echoRecord, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { onePartner, startAdapter, startWithV3 } from '../support/start-adapter.ts'
import { sandboxRegister } from './support/sandbox-register.ts'

const tooMany = { statusCode: 429, message: 'Rate limit is exceeded. Try again in 1 seconds.' }

/** Builds an answer that is `answer` for the first `count` requests, and accepts all later records. */
function first(count: number, answer: Answer): Answer {
  return (seen, response) => (seen.index < count ? answer : echoRecord)(seen, response)
}

describe('a register of 30 marks under a limit of five calls a second', () => {
  it('gets 201 for all marks within about six seconds, and each mark is written once', async () => {
    const sandbox = await startSandbox({ callsPerSecond: 5 })
    const adapter = await startAdapter(sandbox.url, onePartner({ v3: { callsPerSecond: 5 } }))
    const register = await sandboxRegister(sandbox, 30)
    const startedMs = performance.now()
    const reply = await postBatch(adapter, register.batch, register.headers)
    const tookMs = performance.now() - startedMs
    expect(outcomesOf(reply)).toEqual(created(30))
    expect(await register.written()).toEqual(register.learners)
    expect(tookMs).toBeGreaterThan(4_900)
    expect(tookMs).toBeLessThan(9_900)
    expect(reply.headers['server-timing']).toMatch(/^queue;dur=\d+$/)
    const { queuedMs } = adapter.events().at(-1) ?? {}
    expect(queuedMs).toBeGreaterThan(1_000)
  })
})

describe('the throttle', () => {
  it('delays single records too, and counts the calls of all partners with the same subscription key together', async () => {
    const upstream = await startUpstream()
    const partners = ['a', 'b'].map((id) => ({
      id,
      match: { pathPrefix: `/${id}` },
      v3: { callsPerSecond: 2 },
    }))
    const adapter = await startAdapter(upstream.url, { partners })
    const startedMs = performance.now()
    const replies = await Promise.all(
      ['/a', '/a', '/b'].map((prefix, index) =>
        adapter.request('POST', `${prefix}/V2/Attendance/AttendanceRecords`, {
          body: JSON.stringify(flatRecord(index + 1)),
        }),
      ),
    )
    expect(performance.now() - startedMs).toBeGreaterThan(1_000)
    expect(replies.map(({ status }) => status)).toEqual([201, 201, 201])
    expect(replies.every(({ headers }) => headers['server-timing'] !== undefined)).toBe(true)
  })

  it('is off for a V3 on a loopback address unless callsPerSecond is configured', async () => {
    const { adapter } = await startWithV3()
    const reply = await postBatch(adapter, batchOf(flatRecords(40)))
    expect(outcomesOf(reply)).toEqual(created(40))
    expect(reply.headers['server-timing']).toBe(undefined)
  })

  it('answers 503 for records that cannot be posted within the budget', async () => {
    const upstream = await startUpstream()
    const adapter = await startAdapter(upstream.url, onePartner({ v3: { callsPerSecond: 4, budgetMs: 950 } }))
    const parts = await postRecords(adapter, flatRecords(8))
    expect(failuresOf(parts)).toEqual([
      ...created(4),
      ...Array<unknown>(4).fill({ status: 503, codes: ['ADP_BUDGET_EXCEEDED'] }),
    ])
    expect(upstream.seen.length).toBe(4)
  })
})

describe('a record whose post fails', () => {
  const rows: [name: string, answer: Answer, callsPerSecond: number | 'none'][] = [
    ['a 429 without a throttle', replyWith(429, tooMany), 'none'],
    ['a 429 with a throttle', replyWith(429, tooMany), 5],
    ['a 429 with Retry-After', replyWith(429, '', { 'Retry-After': '1' }), 5],
    ['a 503 with Retry-After', replyWith(503, '', { 'Retry-After': '1' }), 'none'],
  ]
  it.each(rows)('is posted again after %s', async (_name, answer, callsPerSecond) => {
    const { upstream, adapter } = await startWithV3(first(1, answer), onePartner({ v3: { callsPerSecond } }))
    const startedMs = performance.now()
    const parts = await postRecords(adapter, [flatRecord(1), flatRecord(1, { MinutesLate: 5 })])
    expect(failuresOf(parts)).toEqual(created(2))
    expect(performance.now() - startedMs).toBeGreaterThan(950)
    // The newer record of the same learner and event waits for the older record.
    expect(upstream.seen.map(({ body }) => (JSON.parse(body) as { Qualifier: { MinutesLate: unknown } }).Qualifier.MinutesLate)).toEqual([null, null, 5]) // prettier-ignore
  })

  it('is not posted again after a 500 if no read-back is configured', async () => {
    const { upstream, adapter } = await startWithV3(first(1, replyWith(500, '', { 'Retry-After': '1' })))
    const parts = await postRecords(adapter, [flatRecord(1)])
    expect([failuresOf(parts), upstream.seen.length]).toEqual([
      [{ status: 504, codes: ['ADP_OUTCOME_UNKNOWN'] }],
      1,
    ])
  })
})
