import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { createSlicing } from '../../src/http/slices.ts'
import { isDenial } from '../../src/writes/denial.ts'
import { postRecords, type PostOptions, type WriteTask } from '../../src/writes/post-records.ts'
import type { PostOutcome, UpstreamError, V3Writes } from '../../src/v3/index.ts'
import { guid } from '../support/batch-request.ts'
import { nestedRecord } from './planned-record.ts'

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
  withdraw: () => undefined,
  leftMs: () => 1_000,
  queuedMs: () => 0,
  close: () => undefined,
}
const options: Omit<PostOptions, 'writes'> = {
  concurrency: 1,
  bodyProfile: 'full',
  readBack: (_record, _post, reason) => Promise.resolve({ kind: 'unknown', reason }),
  permission: { maySend: () => true, renew: () => Promise.resolve(true) },
  slices: createSlicing().open(),
  nowMs: () => 0,
}
const taskOf = (n: number, key = String(n), own: Partial<WriteTask> = {}): WriteTask => ({
  position: n,
  record: nestedRecord(n),
  key,
  first: 'post',
  after: undefined,
  ...own,
})
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
    post: (body, onOutcome) => {
      const index = Number(/"Attendee":\{"ExternalID":"[0-9a-f-]{24}(\d{12})"/.exec(body)?.[1])
      posted.push(index)
      running.push(() => {
        const name = named[index]
        if (name !== undefined && name !== 'fault') onOutcome(outcomes[name])
      })
      most = Math.max(most, running.length)
    },
    ...neverAgain,
  }
  const tasks = named.flatMap((name, index) => (name === 'fault' ? [] : [taskOf(index, keys[index])]))
  const state: { denied?: UpstreamError | undefined; done: boolean } = { done: false }
  const sending = postRecords(tasks, { ...options, writes, concurrency }, (index, { kind }) => {
    reported.push([index, kind])
  }).then((denied) => {
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

describe('sendAll', () => {
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

describe('one record', () => {
  const answer = (outcome: PostOutcome): V3Writes => ({
    post: (_body, onOutcome) => {
      onOutcome(outcome)
    },
    ...neverAgain,
  })
  /** The outcome of one task. */
  const outcomeOf = async (own: Partial<PostOptions> & Pick<PostOptions, 'writes'>, task = taskOf(1)) => {
    const told: PostOutcome[] = []
    const denied = await postRecords([task], { ...options, ...own }, (_position, outcome) =>
      told.push(outcome),
    )
    return denied ?? told[0]
  }

  it('takes an answer of another record for none', async () => {
    const reply = { ExternalID: guid(5), Attendee: { ExternalID: guid(2) } }
    const other: PostOutcome = { kind: 'accepted', reply }
    expect(await outcomeOf({ writes: answer(other) })).toEqual({ kind: 'unknown', reason: 'otherRecord' })
    expect(await outcomeOf({ writes: answer(other) }, taskOf(2))).toBe(other)
  })

  it('posts the JSON in the profile of the partner', async () => {
    const bodies: unknown[] = []
    const writes: V3Writes = {
      post: (body, onOutcome) => {
        bodies.push(Object.keys(JSON.parse(body) as object))
        onOutcome(outcomes.refused)
      },
      ...neverAgain,
    }
    for (const bodyProfile of ['minimal', 'full'] as const) await outcomeOf({ writes, bodyProfile })
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
        return Promise.resolve(outcomes.refused)
      },
    }
    expect(await outcomeOf({ writes, bodyProfile: 'minimal' })).toBe(outcomes.refused)
    expect(seen).toEqual([
      expect.objectContaining({ Attendee: { ExternalID: guid(1) } }),
      outcomes.notApplied,
    ])
  })

  it('product 3: finds out what became of an unknown one, and tells that', async () => {
    const asked: unknown[] = []
    const readBack: PostOptions['readBack'] = ({ record }, _post, reason) => {
      asked.push(record.Attendee.ExternalID, reason)
      return Promise.resolve(outcomes.accepted)
    }
    expect(await outcomeOf({ writes: answer(outcomes.unknown), readBack })).toBe(outcomes.accepted)
    expect(asked).toEqual([guid(1), 'timeout'])
  })

  it('product 3: looks first for one that may have been applied before, and leaves the post to that', async () => {
    const posts: string[] = []
    const writes: V3Writes = {
      post: (body, onOutcome) => {
        posts.push(body)
        onOutcome(outcomes.accepted)
      },
      ...neverAgain,
    }
    const first = taskOf(1, '1', { first: 'readBack' })
    const found: PostOptions['readBack'] = () => Promise.resolve(outcomes.accepted)
    expect(await outcomeOf({ writes, readBack: found }, first)).toBe(outcomes.accepted)
    expect(posts).toEqual([])
    const absent: PostOptions['readBack'] = (_record, post) => new Promise(post)
    expect(await outcomeOf({ writes, readBack: absent }, first)).toBe(outcomes.accepted)
    expect(posts.length).toBe(1)
  })

  it('waits for an older record of the same key, and gives up with the budget', async () => {
    const writes = answer(outcomes.accepted)
    const waiting = (inTime: boolean): WriteTask => taskOf(1, '1', { after: Promise.resolve(inTime) })
    expect(await outcomeOf({ writes }, waiting(true))).toBe(outcomes.accepted)
    expect(await outcomeOf({ writes }, waiting(false))).toMatchObject({
      kind: 'notApplied',
      reason: 'budget',
    })
  })

  const lost = { maySend: () => false, renew: () => Promise.resolve(false) }

  it('sends nothing once it may not', async () => {
    const writes = answer(outcomes.accepted)
    const outcome = await outcomeOf({ writes, permission: lost })
    expect(outcome).toMatchObject({ kind: 'notApplied', reason: 'leaseLost' })
  })

  it('says of one that may have been applied before that this is unknown, whatever keeps it from being sent', async () => {
    const writes = answer(outcomes.accepted)
    const before = taskOf(1, '1', { first: 'readBack' })
    expect(await outcomeOf({ writes, permission: lost }, before)).toMatchObject({ kind: 'unknown' })
    const late = { ...before, after: Promise.resolve(false) }
    expect(await outcomeOf({ writes }, late)).toMatchObject({ kind: 'unknown' })
  })

  it('posts again what was stopped at its socket, once the journal says that it may', async () => {
    const posts: string[] = []
    const stopped: PostOutcome = { kind: 'notApplied', reason: 'leaseLost', retryAfterMs: undefined }
    const writes: V3Writes = {
      ...neverAgain,
      post: (body, onOutcome) => {
        posts.push(body)
        onOutcome(posts.length < 3 ? stopped : outcomes.accepted)
      },
    }
    const renewals: boolean[] = []
    const renew = (): Promise<boolean> => Promise.resolve(renewals.push(true) > 0)
    const outcome = await outcomeOf({ writes, permission: { maySend: () => true, renew } })
    expect([outcome, posts.length, renewals.length]).toEqual([outcomes.accepted, 3, 2])
    posts.length = 0
    expect(await outcomeOf({ writes, permission: { ...lost, maySend: () => true } })).toBe(stopped)
    expect(posts.length).toBe(1)
  })

  it.each([outcomes.accepted, outcomes.refused, outcomes.notApplied])(
    'leaves %j as it is',
    async (outcome) => {
      expect(await outcomeOf({ writes: answer(outcome) })).toBe(outcome)
    },
  )
})

it.each([
  [400, false],
  [401, true],
  [403, true],
  [404, false],
])('isDenial of %i is %s', (status, expected) => {
  expect(isDenial({ ...denial, status })).toBe(expected)
})
