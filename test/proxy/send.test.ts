import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { isDenial, postRecord, sendPlan } from '../../src/proxy/send.ts'
import type { PostOutcome, UpstreamError, V3Writes } from '../../src/v3/index.ts'
import { guid } from '../support/batch-request.ts'
import { nestedRecord, plannedRecord, refusedRecord } from './planned-record.ts'

const denial: UpstreamError = { status: 401, form: 'gateway', entries: [] }
const outcomes = {
  accepted: { kind: 'accepted', reply: { ExternalID: guid(5) } },
  denied: { kind: 'refused', error: denial },
  refused: { kind: 'refused', error: { status: 400, form: 'unreadable', entries: [] } },
  notApplied: { kind: 'notApplied', reason: 'unavailable', retryAfterMs: undefined },
  unknown: { kind: 'unknown', reason: 'timeout' },
} as const satisfies Record<string, PostOutcome>
/** Nothing that was not applied is worth another try, and nothing waits. */
const neverAgain: Omit<V3Writes, 'post'> = {
  repost: (_body, first) => Promise.resolve(first),
  atATime: undefined,
  queuedMs: () => 0,
  close: () => undefined,
}
type Named = keyof typeof outcomes

interface Trace {
  /** Records in the order in which they were posted. */
  readonly posted: number[]
  readonly reported: [index: number, kind: string][]
  most: number
  readonly denied: UpstreamError | undefined
}

/** Sends records whose outcomes are given; the running posts end in the order that `choices` says, without a clock. */
async function send(
  named: readonly (Named | 'fault')[],
  keys: readonly string[],
  concurrency: number,
  choices: readonly number[],
): Promise<Trace> {
  const posted: number[] = []
  const reported: [number, string][] = []
  const running: (() => void)[] = []
  let most = 0
  const writes: V3Writes = {
    post: (body) => {
      const index = Number(/"Attendee":\{"ExternalID":"[0-9a-f-]{24}(\d{12})"/.exec(body)?.[1])
      posted.push(index)
      return new Promise((resolve) => {
        running.push(() => {
          const name = named[index]
          if (name !== undefined && name !== 'fault') resolve(outcomes[name])
        })
        most = Math.max(most, running.length)
      })
    },
    ...neverAgain,
  }
  const records = named.map((name, index) =>
    name === 'fault' ? refusedRecord : plannedRecord(index, keys[index] ?? String(index)),
  )
  const state: { denied?: UpstreamError | undefined; done: boolean } = { done: false }
  const sending = sendPlan(records, writes, { concurrency, bodyProfile: 'full' }, (index, { kind }) =>
    reported.push([index, kind]),
  ).then((denied) => {
    Object.assign(state, { denied, done: true })
  })
  for (let step = 0; !state.done; step += 1) {
    running.splice((choices[step % choices.length] ?? 0) % Math.max(running.length, 1), 1)[0]?.()
    for (let turn = 0; turn < 12; turn += 1) await Promise.resolve()
    if (step > 100 * (named.length + 1)) throw new Error('it never ends')
  }
  await sending
  return { posted, reported, most, denied: state.denied }
}

const ascending = (list: readonly number[]): number[] => [...list].sort((one, other) => one - other)

describe('sendPlan', () => {
  const name = fc.constantFrom<(Named | 'fault')[]>(
    'accepted',
    'denied',
    'denied',
    'denied',
    'refused',
    'notApplied',
    'unknown',
    'fault',
  )
  const plans = fc.array(fc.record({ name, key: fc.constantFrom('a', 'b', 'c', 'd') }), { maxLength: 30 })

  it('posts and reports every record once, or nothing but denials and then stops', async () => {
    await fc.assert(
      fc.asyncProperty(
        plans,
        fc.integer({ min: 1, max: 6 }),
        fc.array(fc.nat(20), { minLength: 1 }),
        async (plan, concurrency, choices) => {
          const named = plan.map((record) => record.name)
          const trace = await send(
            named,
            plan.map(({ key }) => key),
            concurrency,
            choices,
          )
          const sendable = plan.flatMap((record, index) => (record.name === 'fault' ? [] : [index]))
          expect(trace.most).toBeLessThanOrEqual(concurrency)
          expect(new Set(trace.posted).size).toBe(trace.posted.length)
          if (trace.denied !== undefined) {
            expect(trace.reported).toEqual([])
            expect(trace.posted.length).toBeLessThanOrEqual(concurrency)
            expect(trace.posted.map((index) => named[index])).toEqual(trace.posted.map(() => 'denied'))
            return
          }
          expect(ascending(trace.posted)).toEqual(sendable)
          expect(ascending(trace.reported.map(([index]) => index))).toEqual(sendable)
          for (const indexes of Map.groupBy(trace.posted, (index) => plan[index]?.key).values())
            expect(indexes).toEqual(ascending(indexes))
        },
      ),
      { numRuns: 400 },
    )
  })

  it('product 1: reports nothing while nothing but denials has come', async () => {
    expect(await send(['denied', 'denied', 'denied'], [], 2, [0])).toEqual({
      posted: [0, 1],
      reported: [],
      most: 2,
      denied: denial,
    })
    const mixed = await send(['denied', 'accepted', 'denied'], [], 2, [0])
    expect(mixed).toMatchObject({ denied: undefined, reported: [[0, 'refused'], [1, 'accepted'], [2, 'refused']] }) // prettier-ignore
    expect(await send(['fault'], [], 2, [0])).toEqual({
      posted: [],
      reported: [],
      most: 0,
      denied: undefined,
    })
  })
})

describe('postRecord', () => {
  const answer = (outcome: PostOutcome): V3Writes => ({
    post: () => Promise.resolve(outcome),
    ...neverAgain,
  })

  it('takes an answer of another record for none', async () => {
    const other: PostOutcome = {
      kind: 'accepted',
      reply: { ExternalID: guid(5), Attendee: { ExternalID: guid(2) } },
    }
    expect(await postRecord(nestedRecord(1), answer(other), 'full')).toEqual({
      kind: 'unknown',
      reason: 'otherRecord',
    })
    expect(await postRecord(nestedRecord(2), answer(other), 'full')).toBe(other)
  })

  it('posts the JSON in the profile of the partner', async () => {
    const bodies: unknown[] = []
    const post = (body: string): Promise<PostOutcome> => {
      bodies.push(Object.keys(JSON.parse(body) as object))
      return Promise.resolve(outcomes.unknown)
    }
    for (const profile of ['minimal', 'full'] as const)
      await postRecord(nestedRecord(1), { post, ...neverAgain }, profile)
    const minimal = ['Attendee', 'Event', 'AttendanceCode', 'Qualifier']
    expect(bodies).toEqual([
      minimal,
      ['ExternalID', 'Present', 'Absent', 'RecordedOn', 'ChangeProcessName', ...minimal],
    ])
  })

  it('posts again what was not applied, and takes that outcome', async () => {
    const seen: unknown[] = []
    const writes: V3Writes = {
      ...answer(outcomes.notApplied),
      repost: (body, first) => {
        seen.push(JSON.parse(body), first)
        return Promise.resolve(outcomes.unknown)
      },
    }
    expect(await postRecord(nestedRecord(1), writes, 'minimal')).toBe(outcomes.unknown)
    expect(seen).toEqual([
      expect.objectContaining({ Attendee: { ExternalID: guid(1) } }),
      outcomes.notApplied,
    ])
  })

  it.each(Object.values(outcomes))('leaves %j as it is', async (outcome) => {
    expect(await postRecord(nestedRecord(1), answer(outcome), 'full')).toBe(outcome)
  })
})

it.each([
  [400, false],
  [401, true],
  [403, true],
  [404, false],
])('isDenial of %i is %s', (status, expected) => {
  expect(isDenial({ ...denial, status })).toBe(expected)
})
