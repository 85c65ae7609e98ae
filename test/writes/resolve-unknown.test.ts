import { describe, expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createExecutions } from '../../src/writes/execution.ts'
import { createResolveUnknown } from '../../src/writes/resolve-unknown.ts'
import type { PostOutcome, ReadOutcome } from '../../src/v3/index.ts'
import { createNoJournal, type KnownMarks } from '../../src/journal/index.ts'
import { partner } from '../partners/partner.ts'
import { guid } from '../support/batch-request.ts'
import { nestedRecord } from './planned-record.ts'
import { createWriteContext } from './write-context.ts'

const record = nestedRecord(1)
const receivedMs = Date.parse(record.RecordedOn ?? '')
const nothing: KnownMarks = { confirmedAt: () => [], lost: [], lostBefore: [], newer: 'none' }
const read = (...value: object[]): ReadOutcome => ({ kind: 'read', json: { value } })
const applied = read({ ...record, ExternalID: guid(77) })
const absent = read()
const newer = read({
  ...record,
  ExternalID: guid(77),
  RecordedOn: '2026-06-10T11:00:00Z',
  AttendanceCode: { ExternalID: guid(3) },
})
const gone: ReadOutcome = { kind: 'unavailable', reason: 'notConnected', retryAfterMs: undefined }
const denied: ReadOutcome = { kind: 'refused', error: { status: 401, form: 'gateway', entries: [] } }
const accepted: PostOutcome = { kind: 'accepted', reply: { ExternalID: guid(78) } }
const lost: PostOutcome = { kind: 'unknown', reason: 'timeout' }
const conflict: PostOutcome = { kind: 'refused', error: { status: 409, form: 'unreadable', entries: [] } }
const confirmed = expect.objectContaining({ kind: 'accepted' }) as unknown

/**
 * Resolves an unknown outcome. `reads` and `posts` have the results of successive reads and posts, and the last result repeats. Returns the
 * steps and the outcome.
 */
async function find(
  reads: readonly ReadOutcome[],
  posts: readonly PostOutcome[],
  {
    known = () => Promise.resolve(nothing),
    posted: postedRecord = record,
    together,
    durable = true,
    ...own
  }: {
    readonly known?: () => Promise<KnownMarks>
    readonly posted?: typeof record
    readonly leftMs?: () => number
    readonly spacingMs?: readonly number[]
    readonly clientWaits?: boolean
    /** The number of records in the `$batch` with which the record was sent. */
    readonly together?: number
    readonly durable?: boolean
  } = {},
  sentMs?: number,
  isPast = false,
) {
  const done: string[] = []
  let nowMs = 100
  let [looked, posted] = [0, 0]
  const clock = {
    nowMs: () => nowMs,
    after: (ms: number, act: () => void) => {
      done.push(`wait ${ms}`)
      nowMs += ms
      queueMicrotask(act)
      return () => undefined
    },
  }
  const context = createWriteContext({
    journal: { ...createNoJournal(), durable, knownMarks: known },
    clock,
    nowMs: () => receivedMs + nowMs - 100,
  })
  const times = { readBackAfterMs: [10, 20], batchRecordMs: 15 }
  const executionOf = createExecutions(times, clock)
  const resolve = createResolveUnknown(context, {
    batch: 1,
    partner: partner('acme', { any: true }),
    wasOnV2: false,
    spacingMs: [10, 20],
    leftMs: () => 10_000,
    executionOf,
    clientWaits: true,
    ...own,
    read: (query) => {
      done.push(query.startsWith('$filter=Attendee%2FExternalID%20eq%20') ? 'read' : query)
      return Promise.resolve(reads[Math.min(looked++, reads.length - 1)] ?? gone)
    },
  })
  const outcome = await resolve(
    { record: postedRecord, position: 0, receivedMs },
    () => {
      done.push('post')
      return Promise.resolve(posts[Math.min(posted++, posts.length - 1)] ?? lost)
    },
    'connectionLost',
    {
      how: sentMs === undefined ? 'now' : 'before',
      toMs: sentMs,
      isPast,
      execution: executionOf(together === undefined ? undefined : { records: together }, sentMs),
    },
  )
  return { done, outcome }
}

const look = ['wait 10', 'read', 'wait 20', 'read']

describe('createResolveUnknown', () => {
  it('confirms a mark at the first read that shows it', async () => {
    expect(await find([applied], [])).toEqual({ done: ['wait 10', 'read'], outcome: confirmed })
    expect(await find([absent, applied], [])).toEqual({ done: look, outcome: confirmed })
  })

  it('posts the record again if the last read does not find the mark', async () => {
    expect(await find([absent], [accepted])).toEqual({ done: [...look, 'post'], outcome: accepted })
  })

  it.each([
    ['long ago: once and immediately', 70, ['wait 0', 'read', 'post']],
    ['recently: once, as soon as the record can no longer arrive', 75, ['wait 5', 'read', 'post']],
    ['just now: after every pause', 100, [...look, 'post']],
  ])('reads back a record that was sent %s', async (_how, sentMs, done) => {
    expect(await find([absent], [accepted], {}, sentMs)).toEqual({ done, outcome: accepted })
  })

  it('reads V3 only once before a new post if the lost post is too old to still reach V3', async () => {
    const done = ['wait 0', 'read', 'post', ...look, 'post']
    expect((await find([absent], [lost, accepted], {}, 100, true)).done).toEqual(done)
  })

  it('pauses after a failed read before the next read, even for a record that was sent long ago', async () => {
    const again = await find([gone, absent, absent, absent], [lost, accepted], {}, 0)
    expect(again.done).toEqual(['wait 0', 'read', 'wait 20', 'read', 'post', ...look, 'post'])
  })

  it('reads again after a second post was lost, and posts at most twice', async () => {
    expect(await find([absent, absent, applied], [lost])).toEqual({
      done: [...look, 'post', 'wait 10', 'read'],
      outcome: confirmed,
    })
    expect((await find([absent], [lost])).done.filter((step) => step === 'post').length).toBe(2)
    expect((await find([absent], [lost])).outcome).toEqual(lost)
  })

  it.each([
    ['later than the receipt', '2027-01-01T00:00:00Z'],
    ['earlier than the receipt', '2026-06-09T00:00:00Z'],
  ])('ignores the time in the record of the client if that time is %s', async (_when, RecordedOn) => {
    const posted = { ...record, RecordedOn }
    const older = read({
      ...record,
      ExternalID: guid(77),
      RecordedOn: '2026-06-01T11:00:00Z',
      AttendanceCode: { ExternalID: guid(3) },
    })
    expect((await find([newer], [accepted], { posted }, 70)).outcome).toEqual({
      kind: 'unknown',
      reason: 'overwritten',
    })
    expect((await find([older], [accepted], { posted }, 70)).outcome).toEqual(accepted)
  })

  it('does not post over a newer mark of another client', async () => {
    expect(await find([newer], [accepted])).toEqual({
      done: ['wait 10', 'read', 'wait 20'],
      outcome: { kind: 'unknown', reason: 'overwritten' },
    })
  })

  it('leaves the outcome unknown, with the reason "superseded", if the journal has a newer record', async () => {
    const known = (): Promise<KnownMarks> => Promise.resolve({ ...nothing, newer: 'open' })
    expect((await find([newer], [accepted], { known })).outcome).toEqual({
      kind: 'unknown',
      reason: 'superseded',
    })
  })

  it('posts over a mark with a later time if the journal shows that the mark is older', async () => {
    const known = (): Promise<KnownMarks> =>
      Promise.resolve({ ...nothing, confirmedAt: () => [Date.parse('2026-06-10T11:00:00Z')] })
    expect(await find([newer], [accepted], { known })).toEqual({ done: [...look, 'post'], outcome: accepted })
  })

  it('leaves the outcome unknown while the journal cannot be read', async () => {
    const known = (): Promise<KnownMarks> => Promise.reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'no'))
    const { done, outcome } = await find([applied], [accepted], { known })
    expect(outcome).toEqual({ kind: 'unknown', reason: 'connectionLost' })
    expect(done).not.toContain('post')
  })

  it.each([
    ['no response', [absent, gone]],
    ['a refusal', [denied]],
    ['an unreadable reply', [{ kind: 'read', json: {} } as const]],
  ])('leaves the outcome unknown, and posts nothing, if the last read ends with %s', async (_what, reads) => {
    const { done, outcome } = await find(reads, [accepted])
    expect(outcome).toEqual({ kind: 'unknown', reason: 'connectionLost' })
    expect(done).not.toContain('post')
  })

  it('continues after a failed read if a later read succeeds', async () => {
    expect((await find([gone, absent], [accepted])).outcome).toBe(accepted)
    expect((await find([gone, applied], [])).outcome).toEqual(confirmed)
  })

  it('confirms the first post if the second post is refused as a conflict and V3 shows the mark', async () => {
    expect((await find([absent, absent, applied], [conflict])).outcome).toEqual(confirmed)
    expect((await find([absent], [conflict])).outcome).toBe(conflict)
  })

  it('reads nothing if there is no time for a read, but still waits until the lost post can no longer arrive', async () => {
    const unknown = { kind: 'unknown', reason: 'connectionLost' }
    expect(await find([applied], [], { leftMs: () => 10 })).toEqual({ done: ['wait 30'], outcome: unknown })
    expect(await find([applied], [], { spacingMs: [] })).toEqual({ done: [], outcome: unknown })
  })

  it.each([['notApplied'], ['refused']])('returns the outcome of a second post that was %s', async (kind) => {
    const second: PostOutcome =
      kind === 'refused'
        ? { kind, error: { status: 400, form: 'unreadable', entries: [] } }
        : { kind: 'notApplied', reason: 'throttled', retryAfterMs: undefined }
    expect((await find([absent], [second])).outcome).toBe(second)
  })

  describe('for a record that was sent in a $batch of three records', () => {
    const together = 3

    it('reads until no further mark of the batch has appeared for some time, and then posts', async () => {
      const done = [...look, 'wait 20', 'read', 'wait 20', 'read', 'wait 5', 'read', 'post']
      expect(await find([absent], [accepted], { together })).toEqual({ done, outcome: accepted })
    })

    it('confirms a mark that appears late, without a post', async () => {
      const { done, outcome } = await find([absent, absent, absent, applied], [], { together })
      expect(outcome).toEqual(confirmed)
      expect(done).not.toContain('post')
    })

    it('finds a mark of another client, but does not decide before V3 has finished the batch', async () => {
      const { done, outcome } = await find([newer], [accepted], { together })
      expect(done.filter((step) => step === 'read').length).toBe(5)
      expect(outcome).toEqual({ kind: 'unknown', reason: 'overwritten' })
    })

    it('leaves the record open when the budget ends, and returns the time at which the reply was lost', async () => {
      expect(await find([absent], [accepted], { together, leftMs: () => 15 })).toEqual({
        done: ['wait 10', 'read'],
        outcome: { kind: 'unknown', reason: 'stillExecuting', sinceMs: 100 },
      })
    })

    it('in the background, reads once and leaves the record open if the budget is too short', async () => {
      const short = { together, clientWaits: false, leftMs: () => 20 }
      expect(await find([absent], [accepted], short, 60)).toEqual({
        done: ['wait 10', 'read'],
        outcome: { kind: 'unknown', reason: 'stillExecuting', sinceMs: 60 },
      })
    })

    it('in the background, reads until V3 has finished the batch and then posts if the budget is long enough', async () => {
      const { done, outcome } = await find([absent], [accepted], { together, clientWaits: false }, 60)
      expect([done.at(-2), done.at(-1), outcome]).toEqual(['read', 'post', accepted])
    })

    it('in the background, decides after a single read if V3 has finished the batch', async () => {
      const done = ['wait 0', 'read', 'post']
      expect(await find([absent], [accepted], { together, clientWaits: false }, 20)).toEqual({
        done,
        outcome: accepted,
      })
    })

    it('waits until V3 has finished the batch if there is no journal in which the record can stay open', async () => {
      const lostFor = { together, durable: false, leftMs: () => 5 }
      expect((await find([absent], [accepted], lostFor)).done).toEqual(['wait 1', 'wait 74'])
    })
  })
})
