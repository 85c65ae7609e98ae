import { describe, expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { type ReadSession, readUpstream } from '../../src/reads/read-upstream.ts'
import { openCallBudget } from '../../src/upstream/index.ts'
import { createRateLimits, soleQueue } from '../../src/upstream/index.ts'
import type { ReadOutcome, V3Credentials } from '../../src/v3/index.ts'
import { createManualClock } from '../support/manual-clock.ts'

const page: ReadOutcome = { kind: 'read', json: { value: [] } }
const refused = (status: number, code?: string, message = 'told'): ReadOutcome => ({
  kind: 'refused',
  error: { status, form: 'odata', entries: [{ code, message, target: undefined }] },
})
const unavailable = (
  reason: 'notConnected' | 'throttled' | 'unavailable',
  retryAfterMs?: number,
): ReadOutcome => ({ kind: 'unavailable', reason, retryAfterMs })

const renewed = (n: number): V3Credentials => ({ authorization: `bearer ${n}`, subscriptionKey: 'k' })

interface Seen {
  /** The JSON, or the code, message and details of the error. */
  readonly result: unknown
  readonly calls: readonly (readonly [atMs: number, token: string])[]
  readonly pages: number
}

/** Reads once from a V3 that gives these outcomes in turn, and then repeats the last. `callsPerSecond` limits the rate. */
async function read(
  outcomes: readonly ReadOutcome[],
  {
    budgetMs = 90_000,
    callsPerSecond,
    renews = false,
  }: { budgetMs?: number; callsPerSecond?: number; renews?: boolean } = {},
): Promise<Seen> {
  const clock = createManualClock()
  const calls: [number, string][] = []
  let tokens = 0
  const rateLimit =
    callsPerSecond === undefined ? undefined : createRateLimits(clock).of('key', callsPerSecond)
  const { signal } = new AbortController()
  const session: ReadSession = {
    reader: {
      get: (_key, _query, { authorization }) => {
        calls.push([clock.nowMs(), authorization])
        return Promise.resolve(outcomes[Math.min(calls.length, outcomes.length) - 1] ?? page)
      },
      held: () => 0,
      close: () => Promise.resolve(),
    },
    queueKey: soleQueue,
    credentials: renewed(0),
    renew: renews ? () => Promise.resolve(renewed((tokens += 1))) : undefined,
    budget: openCallBudget({
      rateLimit,
      queueKey: soleQueue,
      priority: 'read',
      budgetMs,
      clock,
      signal: () => signal,
    }),
    signal,
    pages: 0,
  }
  const result = readUpstream(session, '', 'q').catch((error: unknown) =>
    error instanceof AdapterError ? [error.code, error.message, error.details] : error,
  )
  await clock.pass(1_000_000)
  return { result: await result, calls, pages: session.pages }
}

const times = ({ calls }: Seen): number[] => calls.map(([atMs]) => atMs)

describe('readUpstream', () => {
  it('returns the JSON of a 2xx, and undefined for a 404', async () => {
    expect(await read([page])).toEqual({ result: { value: [] }, calls: [[0, 'bearer 0']], pages: 1 })
    expect(await read([refused(404)])).toEqual({ result: undefined, calls: [[0, 'bearer 0']], pages: 1 })
  })

  const again: [name: string, outcome: ReadOutcome, times: number[]][] = [
    ['a 429 with Retry-After', unavailable('throttled', 1_000), [0, 1_000, 5_000, 13_000]],
    ['a 429 without Retry-After', unavailable('throttled'), [0, 2_000, 6_000, 14_000]],
    ['a 503 with Retry-After', unavailable('unavailable', 3_000), [0, 3_000, 7_000, 15_000]],
    ['a 503 without Retry-After', unavailable('unavailable'), [0, 2_000, 6_000, 14_000]],
  ]
  it.each(again)('retries after %s while the budget lasts', async (_name, outcome, expected) => {
    const seen = await read([outcome, outcome, outcome, page])
    expect([times(seen), seen.result]).toEqual([expected, { value: [] }])
    const never = await read([outcome], { budgetMs: expected.at(-1) ?? 0 })
    expect([times(never), never.result, never.pages]).toEqual([
      expected.slice(0, 3),
      [outcome.kind === 'unavailable' && outcome.retryAfterMs !== undefined ? 'ADP_BUDGET_EXCEEDED' : 'ADP_UPSTREAM_UNAVAILABLE', expect.any(String), []],
      0,
    ]) // prettier-ignore
  })

  it("removes positions in the adapter's own query from an error message of V3", async () => {
    const entries = [{ code: 'X', message: 'Expected "eq" at position 15.', target: undefined }]
    const seen = await read([{ kind: 'refused', error: { status: 501, form: 'odata', entries } }])
    expect(seen.result).toEqual([
      'ADP_UPSTREAM_REFUSED',
      'Expected "eq".',
      [{ code: 'X', message: 'Expected "eq".' }],
    ])
  })

  it('tries three times if V3 does not respond', async () => {
    const seen = await read([unavailable('notConnected')])
    expect([times(seen), seen.result]).toEqual([
      [0, 250, 1_250],
      ['ADP_UPSTREAM_UNAVAILABLE', expect.any(String), []],
    ])
  })

  it('queues every GET at the rate limit, including retries', async () => {
    const seen = await read([unavailable('notConnected'), unavailable('throttled', 4_000), page], {
      callsPerSecond: 1,
    })
    expect(times(seen)).toEqual([0, 1_050, 5_050])
  })

  it('renews a rejected token once, but not a second time', async () => {
    const seen = await read([refused(401), page], { renews: true })
    expect(seen.calls.map(([, token]) => token)).toEqual(['bearer 0', 'bearer 1'])
    const twice = await read([refused(401)], { renews: true })
    expect([twice.calls.length, twice.result]).toEqual([2, ['ADP_TOKEN', 'told', []]])
  })

  const errors: [name: string, outcome: ReadOutcome, result: unknown][] = [
    ['a 401', refused(401), ['ADP_TOKEN', 'told', []]],
    ['a 401 without a message', refused(401, undefined, ''), ['ADP_TOKEN', expect.stringContaining('401'), []]],
    ['a 403', refused(403), ['ADP_FORBIDDEN', 'told', []]],
    ['a 400', refused(400, 'X1'), ['ADP_UPSTREAM_REFUSED', 'told', [{ code: 'X1', message: 'told' }]]],
    ['a 400 without a message', refused(400, undefined, ''), ['ADP_UPSTREAM_REFUSED', expect.stringContaining('400'), [{ code: 'ADP_UPSTREAM_REFUSED', message: '' }]]],
    ['an unreadable reply', { kind: 'broken', status: 200 }, ['ADP_UPSTREAM_PROTOCOL', expect.stringContaining('200'), []]],
  ] // prettier-ignore
  it.each(errors)('throws an error with the expected code for %s', async (_name, outcome, result) => {
    const seen = await read([outcome])
    expect([seen.result, seen.calls.length]).toEqual([result, 1])
  })
})
