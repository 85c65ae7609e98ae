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

/** What was done and told for reads and posts that go so; the last of each repeats. */
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
    /** So many records were sent with it in one `$batch`, and it is one of them. */
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
  it('confirms a mark that is there, at the first look that shows it', async () => {
    expect(await find([applied], [])).toEqual({ done: ['wait 10', 'read'], outcome: confirmed })
    expect(await find([absent, applied], [])).toEqual({ done: look, outcome: confirmed })
  })

  it('posts again only after the last look did not find it', async () => {
    expect(await find([absent], [accepted])).toEqual({ done: [...look, 'post'], outcome: accepted })
  })

  it.each([
    ['long ago looks once, at once', 70, ['wait 0', 'read', 'post']],
    ['a moment ago looks as late as is sure', 75, ['wait 5', 'read', 'post']],
    ['just now looks after every pause', 100, [...look, 'post']],
  ])('what was sent %s', async (_how, sentMs, done) => {
    expect(await find([absent], [accepted], {}, sentMs)).toEqual({ done, outcome: accepted })
  })

  it('reads once what can no longer arrive, whenever it was sent, and its own post after every pause', async () => {
    const done = ['wait 0', 'read', 'post', ...look, 'post']
    expect((await find([absent], [lost, accepted], {}, 100, true)).done).toEqual(done)
  })

  it('pauses before it looks again for what was sent long ago, and after its own post', async () => {
    const again = await find([gone, absent, absent, absent], [lost, accepted], {}, 0)
    expect(again.done).toEqual(['wait 0', 'read', 'wait 20', 'read', 'post', ...look, 'post'])
  })

  it('looks again when the second post is lost, too, and posts twice at the most', async () => {
    expect(await find([absent, absent, applied], [lost])).toEqual({
      done: [...look, 'post', 'wait 10', 'read'],
      outcome: confirmed,
    })
    expect((await find([absent], [lost])).done.filter((step) => step === 'post').length).toBe(2)
    expect((await find([absent], [lost])).outcome).toEqual(lost)
  })

  it.each([
    ['after its receipt', '2027-01-01T00:00:00Z'],
    ['before its receipt', '2026-06-09T00:00:00Z'],
  ])('a time %s that the client gave its record decides nothing', async (_when, RecordedOn) => {
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

  it('leaves a newer mark of somebody else alone, and ends when its own write can no longer arrive', async () => {
    expect(await find([newer], [accepted])).toEqual({
      done: ['wait 10', 'read', 'wait 20'],
      outcome: { kind: 'unknown', reason: 'overwritten' },
    })
  })

  it('leaves another mark alone where the journal knows a newer record', async () => {
    const known = (): Promise<KnownMarks> => Promise.resolve({ ...nothing, newer: 'open' })
    expect((await find([newer], [accepted], { known })).outcome).toEqual({
      kind: 'unknown',
      reason: 'superseded',
    })
  })

  it('posts over a newer mark that the journal knows as an older one', async () => {
    const known = (): Promise<KnownMarks> =>
      Promise.resolve({ ...nothing, confirmedAt: () => [Date.parse('2026-06-10T11:00:00Z')] })
    expect(await find([newer], [accepted], { known })).toEqual({ done: [...look, 'post'], outcome: accepted })
  })

  it('decides nothing while the journal cannot be asked', async () => {
    const known = (): Promise<KnownMarks> => Promise.reject(new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'no'))
    const { done, outcome } = await find([applied], [accepted], { known })
    expect(outcome).toEqual({ kind: 'unknown', reason: 'connectionLost' })
    expect(done).not.toContain('post')
  })

  it.each([
    ['no answer', [absent, gone]],
    ['a refusal', [denied]],
    ['an answer that cannot be read', [{ kind: 'read', json: {} } as const]],
  ])('stays unknown, and posts nothing, with %s at the last look', async (_what, reads) => {
    const { done, outcome } = await find(reads, [accepted])
    expect(outcome).toEqual({ kind: 'unknown', reason: 'connectionLost' })
    expect(done).not.toContain('post')
  })

  it('a look that fails is made up for by a later one', async () => {
    expect((await find([gone, absent], [accepted])).outcome).toBe(accepted)
    expect((await find([gone, applied], [])).outcome).toEqual(confirmed)
  })

  it('takes a conflict at the second post for the first one, where that is there', async () => {
    expect((await find([absent, absent, applied], [conflict])).outcome).toEqual(confirmed)
    expect((await find([absent], [conflict])).outcome).toBe(conflict)
  })

  it('reads nothing that the time does not allow, and ends when its write can no longer arrive; is off without pauses', async () => {
    const unknown = { kind: 'unknown', reason: 'connectionLost' }
    expect(await find([applied], [], { leftMs: () => 10 })).toEqual({ done: ['wait 30'], outcome: unknown })
    expect(await find([applied], [], { spacingMs: [] })).toEqual({ done: [], outcome: unknown })
  })

  it.each([['notApplied'], ['refused']])('tells a second post that was %s as that', async (kind) => {
    const second: PostOutcome =
      kind === 'refused'
        ? { kind, error: { status: 400, form: 'unreadable', entries: [] } }
        : { kind: 'notApplied', reason: 'throttled', retryAfterMs: undefined }
    expect((await find([absent], [second])).outcome).toBe(second)
  })

  describe('of a record that was sent in a $batch of three', () => {
    const together = 3

    it('reads on until none was seen for a time that grows with the batch, then posts', async () => {
      const done = [...look, 'wait 20', 'read', 'wait 20', 'read', 'wait 5', 'read', 'post']
      expect(await find([absent], [accepted], { together })).toEqual({ done, outcome: accepted })
    })

    it('confirms a mark that comes late, and posts nothing', async () => {
      const { done, outcome } = await find([absent, absent, absent, applied], [], { together })
      expect(outcome).toEqual(confirmed)
      expect(done).not.toContain('post')
    })

    it('decides nothing by another mark before the batch is over', async () => {
      const { done, outcome } = await find([newer], [accepted], { together })
      expect(done.filter((step) => step === 'read').length).toBe(5)
      expect(outcome).toEqual({ kind: 'unknown', reason: 'overwritten' })
    })

    it('leaves it open when the budget ends, with the time from which recovery counts', async () => {
      expect(await find([absent], [accepted], { together, leftMs: () => 15 })).toEqual({
        done: ['wait 10', 'read'],
        outcome: { kind: 'unknown', reason: 'stillExecuting', sinceMs: 100 },
      })
    })

    it('reads it once in the background, and leaves it open', async () => {
      expect(await find([absent], [accepted], { together, clientWaits: false }, 60)).toEqual({
        done: ['wait 10', 'read'],
        outcome: { kind: 'unknown', reason: 'stillExecuting', sinceMs: 60 },
      })
    })

    it('decides by one read in the background once the batch is over', async () => {
      const done = ['wait 0', 'read', 'post']
      expect(await find([absent], [accepted], { together, clientWaits: false }, 20)).toEqual({
        done,
        outcome: accepted,
      })
    })

    it('waits for the end of the batch itself where no journal keeps the record open', async () => {
      const lostFor = { together, durable: false, leftMs: () => 5 }
      expect((await find([absent], [accepted], lostFor)).done).toEqual(['wait 1', 'wait 74'])
    })
  })
})
