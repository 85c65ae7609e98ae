import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import type { PostOutcome, UpstreamError } from '../../src/v3/index.ts'
import { guid } from '../support/batch-request.ts'
import { nestedRecord, plannedRecord, refusedRecord } from './planned-record.ts'
import { acceptedReply, type StartedRun, startRun } from './start-run.ts'

const denied = (status: number, message?: string): UpstreamError => ({
  status,
  form: 'gateway',
  entries: message === undefined ? [] : [{ code: undefined, message, target: undefined }],
})
const outcomes = {
  accepted: acceptedReply,
  denied: { kind: 'refused', error: denied(401, 'No.') },
  refused: { kind: 'refused', error: { status: 400, form: 'unreadable', entries: [] } },
  notApplied: { kind: 'notApplied', reason: 'unavailable', retryAfterMs: undefined },
  unknown: { kind: 'unknown', reason: 'timeout' },
} as const satisfies Record<string, PostOutcome>
type Named = keyof typeof outcomes
const leaseLost: PostOutcome = { kind: 'notApplied', reason: 'leaseLost', retryAfterMs: undefined }
const ascending = (list: readonly number[]): number[] => [...list].sort((one, other) => one - other)

describe('a run of records', () => {
  /** Runs records with the given outcomes. `choices` selects, step by step, which post in progress ends next. */
  async function run(
    named: readonly (Named | 'fault')[],
    keys: readonly string[],
    concurrency: number,
    choices: readonly number[],
  ) {
    const running: (() => void)[] = []
    let most = 0
    const records = named.map((name, n) => (name === 'fault' ? refusedRecord : plannedRecord(n, keys[n])))
    const started = startRun({
      records,
      partner: { concurrency },
      run: { isNew: true },
      post: (n) =>
        new Promise((resolve) => {
          const name = named[n]
          running.push(() => resolve(name === undefined || name === 'fault' ? leaseLost : outcomes[name]))
          most = Math.max(most, running.length)
        }),
    })
    for (let step = 0; !started.state.isOver; step += 1) {
      running.splice((choices[step % choices.length] ?? 0) % Math.max(running.length, 1), 1)[0]?.()
      await started.turn()
      if (step > 100 * (named.length + 1)) throw new Error('it never ends')
    }
    return { ...started, most }
  }
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

  it('posts and reports every record exactly once, unless V3 denies every record that was posted first', async () => {
    await fc.assert(
      fc.asyncProperty(
        plans,
        fc.integer({ min: 1, max: 6 }),
        fc.array(fc.nat(20), { minLength: 1 }),
        async (plan, concurrency, choices) => {
          const named = plan.map((record) => record.name)
          const keys = plan.map(({ key }) => key)
          const { posted, most, parts, state } = await run(named, keys, concurrency, choices)
          const sendable = plan.flatMap((record, index) => (record.name === 'fault' ? [] : [index]))
          expect(most).toBeLessThanOrEqual(concurrency)
          expect(new Set(posted).size).toBe(posted.length)
          if (state.error !== undefined) {
            expect([state.error, parts]).toMatchObject([{ code: 'ADP_TOKEN', message: 'No.' }, []])
            expect(posted.length).toBeLessThanOrEqual(concurrency)
            expect(posted.map((index) => named[index])).toEqual(posted.map(() => 'denied'))
            return
          }
          expect(ascending(posted)).toEqual(sendable)
          expect(ascending(parts.map(([index]) => index))).toEqual(sendable)
          for (const indexes of Map.groupBy(posted, (index) => plan[index]?.key).values())
            expect(indexes).toEqual(ascending(indexes))
        },
      ),
      { numRuns: 200 },
    )
  })

  it('ends with the denial of V3, and reports no record, if V3 denies every record that was posted first', async () => {
    const all = await run(['denied', 'denied', 'denied'], [], 2, [0])
    expect([all.posted, all.parts, all.state.error]).toMatchObject([[0, 1], [], { code: 'ADP_TOKEN' }])
    const mixed = await run(['denied', 'accepted', 'denied'], [], 2, [0])
    expect(mixed.parts).toEqual([[0, 401], [1, 201], [2, 401]]) // prettier-ignore
  })
})

describe('a denial after the status line of the reply was sent', () => {
  it.each([
    ['only a resend can post the record', false, 503, { state: 'notApplied', retry: 'resend' }],
    ['recovery may still post the record', true, 504, { state: 'parked' }],
  ])('is reported in the part of the denied record if %s', async (_what, wasParked, status, settlement) => {
    const started = startRun({
      records: [plannedRecord(1)],
      post: () => ({ kind: 'refused', error: denied(403) }),
      run: { isNew: false, wasParked: () => wasParked },
      isStatusSent: true,
    })
    const { parts, settled } = await started.end()
    expect(parts).toEqual([[0, status]])
    expect(settled).toMatchObject([settlement])
  })
})

describe('a run with an unexpected failure', () => {
  it('leaves its records to recovery, and neither posts nor settles any of them any more', async () => {
    const answers: (() => void)[] = []
    const started = startRun({
      records: [1, 2, 3, 4, 5].map((n) => plannedRecord(n)),
      post: (n) => {
        if (n === 1) return acceptedReply
        setImmediate(() => started.context.failures.fail(new RangeError('an odd reply')))
        return new Promise((resolve) => answers.push(() => resolve(acceptedReply)))
      },
      partner: { concurrency: 2 },
    })
    const { error, posted, settled } = await started.end()
    expect(error).toMatchObject({ code: 'ADP_OUTCOME_UNKNOWN' })
    expect([...started.context.orphans.keys()]).toEqual([7])
    const before = settled.length
    expect(posted).toEqual([1, 2, 3])
    for (const answer of answers) answer()
    await new Promise((resolve) => setImmediate(resolve))
    expect([posted, settled.length]).toEqual([[1, 2, 3], before])
  })
})

describe('a run of one record', () => {
  /** Runs the record of learner 1, and returns its outcome. If `mayBeApplied` is true, an earlier POST may have applied the record. */
  async function outcomeOf(own: StartedRun, mayBeApplied = false) {
    const run = { mayBeApplied: () => mayBeApplied, ...own.run }
    const { settled, posted } = await startRun({ records: [plannedRecord(1)], ...own, run }).end()
    const [one] = settled
    return { state: one?.state, reason: one?.reason, retry: one?.retry, posts: posted.length }
  }

  it('reports an unknown outcome if V3 answers with another record', async () => {
    const reply = { ExternalID: guid(5), Attendee: { ExternalID: guid(2) } }
    const post = (): PostOutcome => ({ kind: 'accepted', reply })
    expect(await outcomeOf({ post })).toMatchObject({ state: 'unknown', reason: 'otherRecord' })
    expect(await outcomeOf({ post, records: [plannedRecord(2)] })).toMatchObject({ state: 'confirmed' })
  })

  it('posts JSON in the body profile of the partner', async () => {
    const bodies: unknown[] = []
    const post = (_n: number, body: string): PostOutcome => {
      bodies.push(Object.keys(JSON.parse(body) as object))
      return outcomes.refused
    }
    for (const bodyProfile of ['minimal', 'full'] as const)
      await outcomeOf({ post, partner: { bodyProfile } })
    const minimal = ['Attendee', 'Event', 'AttendanceCode', 'Qualifier']
    expect(bodies).toEqual([
      minimal,
      ['ExternalID', 'Present', 'Absent', 'RecordedOn', 'ChangeProcessName', ...minimal],
    ])
  })

  const shown = { kind: 'read', json: { value: [{ ...nestedRecord(1), ExternalID: guid(77) }] } } as const
  const absent = { kind: 'read', json: { value: [] } } as const
  const partner = { readBackAfterMs: [10] }

  it.each([
    ['confirms a lost record if V3 shows it', outcomes.unknown, false, shown, 'confirmed', 1],
    [
      'leaves a lost record unknown if V3 cannot be read',
      outcomes.unknown,
      false,
      { kind: 'overdue' },
      'unknown',
      1,
    ],
    ['does not post a resent record if V3 shows it', acceptedReply, true, shown, 'confirmed', 0],
    ['posts a resent record if V3 does not show it', acceptedReply, true, absent, 'confirmed', 1],
  ] as const)('%s', async (_what, outcome, mayBeApplied, read, state, posts) => {
    const own = { post: () => outcome, reads: [read], partner }
    expect(await outcomeOf(own, mayBeApplied)).toMatchObject({ state, posts })
  })

  it.each([
    ['posts the record if V3 shows no newer mark', absent, { state: 'confirmed', posts: 1 }],
    [
      'does not post the record if V3 cannot be read',
      { kind: 'overdue' },
      { reason: 'unavailable', posts: 0 },
    ],
  ] as const)(
    'reads V3 before it posts if a newer mark may have reached V2: %s',
    async (_what, read, expected) => {
      expect(await outcomeOf({ reads: [read], partner, run: { isChecked: true } })).toMatchObject(expected)
    },
  )

  it.each([
    ['posts the record if its earlier read-back was complete', 'timeout', { state: 'confirmed', posts: 1 }],
    [
      'does not post the record if its earlier read-back was incomplete',
      'notReadBack',
      { state: 'unknown', reason: 'connectionLost', posts: 0 },
    ],
  ])('continues the read-back of an earlier run: %s', async (_what, reason, expected) => {
    const run = { unknown: new Map([[0, reason]]) }
    const once = { reads: [absent, { kind: 'overdue' }], partner: { readBackAfterMs: [10, 20] } } as const
    expect(await outcomeOf({ ...once, run }, true)).toMatchObject(expected)
  })

  it('waits for an older record of its learner and event, but no longer than the budget', async () => {
    const older = [{ batch: 3, position: 4 }]
    const own = { run: { after: new Map([[0, older]]) } }
    const open = { stillOpen: () => Promise.resolve(older) }
    expect(await outcomeOf(own)).toMatchObject({ state: 'confirmed' })
    expect(await outcomeOf({ ...own, journal: open })).toMatchObject({ reason: 'budget', posts: 0 })
    expect(await outcomeOf({ ...own, journal: open }, true)).toMatchObject({
      reason: 'notReadBack',
      posts: 0,
    })
  })
})

describe('an outcome in a run of several records', () => {
  /** Starts a run of one record for each key. The post of a record ends when the test passes its position to `ended`. */
  function open(keys: readonly string[] = ['1', '2', '3', '4']) {
    const ends: (() => void)[] = []
    const run = startRun({
      records: keys.map((key, n) => plannedRecord(n, key)),
      partner: { concurrency: 4 },
      post: (n) => new Promise((resolve) => (ends[n] = () => resolve(acceptedReply))),
    })
    const turns = async (): Promise<void> => {
      for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    }
    const ended = async (...positions: number[]): Promise<void> => {
      for (const position of positions) {
        ends[position]?.()
        await turns()
      }
    }
    return { ...run, ended, turns }
  }

  it('shares a commit with other outcomes that arrive within a short time', async () => {
    const { commits, parts, ended, clock } = open()
    await ended(2)
    await clock.pass(2)
    await ended(0, 3)
    expect(commits).toEqual([])
    await ended(1)
    expect(commits).toEqual([[2, 0, 3, 1]])
    expect(parts.map(([position]) => position)).toEqual([2, 0, 3, 1])
  })

  it('is committed after a short time even if other outcomes are still missing', async () => {
    const { commits, parts, ended, clock, turns } = open()
    await ended(1)
    await clock.pass(50)
    await turns()
    expect([commits, parts]).toEqual([[[1]], [[1, 201]]])
  })

  it('leaves its record open while V3 may still be executing the $batch, so that later records of the same key wait', async () => {
    const { end } = startRun({
      records: [plannedRecord(1, 'k'), plannedRecord(2, 'k'), plannedRecord(3, 'k'), plannedRecord(4)],
      post: (n) => (n === 1 ? { ...outcomes.unknown, together: { records: 2 } } : acceptedReply),
      journal: { durable: true },
      partner: { concurrency: 4, readBackAfterMs: [], batchRecordMs: 10_000 },
    })
    const { posted, parts, settled } = await end()
    expect(posted).toEqual([1, 4])
    expect(Object.fromEntries(parts)).toEqual({ 0: 504, 1: 503, 2: 503, 3: 201 })
    expect(ascending(settled.map(({ position }) => position))).toEqual([1, 2, 3])
  })

  it('is committed immediately if a later record of its key waits', async () => {
    const { commits, posted, ended } = open(['1', '2', '1'])
    expect(posted).toEqual([0, 1])
    await ended(0)
    expect([commits, posted]).toEqual([[[0]], [0, 1, 2]])
  })
})
