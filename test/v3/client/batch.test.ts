import { describe, expect, it } from 'vitest'

import { type BatchChoice, createBatchCapability, createBatchPost } from '../../../src/v3/client/batch.ts'
import type { BatchResult } from '../../../src/v3/client/batch-reply.ts'
import type { PostOutcome, UnknownReason } from '../../../src/v3/index.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const named = (reason: UnknownReason): PostOutcome => ({ kind: 'unknown', reason })
const inBatch = named('serverError')
const alone = named('otherRecord')
const accepted: PostOutcome = { kind: 'accepted', reply: { ExternalID: 'x' } }

/** Creates a post function. `answer` returns the result of each batch. */
function start(choice: Partial<BatchChoice>, answer: (count: number, records: string) => BatchResult) {
  const clock = createManualClock()
  const calls: string[] = []
  const post = createBatchPost(
    { mode: 'auto', format: 'multipart', maxRecords: 3, recordMs: 1, concurrency: 2, ...choice },
    createBatchCapability(() => clock.nowMs()),
    (records) => {
      calls.push(`[${records.join('')}]`)
      return Promise.resolve(answer(records.length, records.join('')))
    },
    (record) => {
      calls.push(record)
      return Promise.resolve(alone)
    },
  )
  const postAll = (records: string): Promise<PostOutcome[]> => Promise.all(Array.from(records, post))
  return { clock, calls, postAll }
}

const answered = (sound: boolean) => (count: number): BatchResult => ({ kind: 'answered', outcomes: Array<PostOutcome>(count).fill(inBatch), sound }) // prettier-ignore
const unsupported = (): BatchResult => ({ kind: 'unsupported' })

describe('createBatchPost', () => {
  it('posts only single records for ten minutes after the service refused a batch, if the mode is auto', async () => {
    const { clock, calls, postAll } = start({}, unsupported)
    expect(await postAll('abc')).toEqual([alone, alone, alone])
    await postAll('de')
    await clock.pass(600_000)
    await postAll('fghij')
    expect(calls.filter((call) => call.startsWith('['))).toEqual(['[abc]', '[fgh]'])
    expect(calls.filter((call) => !call.startsWith('[')).sort()).toEqual(Array.from('abcdefghij'))
  })

  it('posts no record again, and in mode auto no further batch, if the parts of a reply cannot be assigned to records', async () => {
    const { calls, postAll } = start({}, answered(false))
    const outcomes = await postAll('abc')
    const together = { records: 3 }
    expect(outcomes).toEqual(Array(3).fill({ ...inBatch, together }))
    // All records share one object, because an observation of one record applies to the whole batch.
    expect(new Set(outcomes.map((outcome) => outcome.kind === 'unknown' && outcome.together)).size).toBe(1)
    expect(await postAll('de')).toEqual([alone, alone])
    expect(calls).toEqual(['[abc]', 'd', 'e'])
  })

  const taken = (count: number): BatchResult => ({ kind: 'answered', outcomes: Array<PostOutcome>(count).fill(accepted), sound: true }) // prettier-ignore

  it('halves a batch that is too long, and limits the next batches to the accepted length for ten minutes', async () => {
    const short = (count: number): BatchResult =>
      count > 3 ? { kind: 'tooLong', throttled: undefined } : taken(count)
    const { clock, calls, postAll } = start({ maxRecords: 8 }, short)
    expect(await postAll('abcdefgh')).toEqual(Array(8).fill(accepted))
    await postAll('ijklm')
    await clock.pass(600_000)
    await postAll('nopq')
    expect(calls).toEqual(['[abcdefgh]', '[abcd]', '[ab]', '[cd]', '[ef]', '[gh]', '[ij]', '[kl]', 'm', '[nopq]', '[no]', '[pq]']) // prettier-ignore
  })

  it('finds the single record that makes a batch too long, and keeps the accepted length', async () => {
    const large = (count: number, records: string): BatchResult =>
      records.includes('X') ? { kind: 'tooLong', throttled: undefined } : taken(count)
    const { calls, postAll } = start({ maxRecords: 8 }, large)
    // `g` and `X` end up in batches of one record. Each is posted alone, and the answer to this post is its outcome.
    expect(await postAll('abcdefgX')).toEqual([...Array<PostOutcome>(6).fill(accepted), alone, alone])
    await postAll('ijklmnop')
    expect(calls).toEqual(['[abcdefgX]', '[abcd]', '[efgX]', '[ef]', '[gX]', 'g', 'X', '[ijkl]', '[mnop]'])
  })

  it('reports the records of a throttled batch as throttled, and sends smaller batches afterwards', async () => {
    const throttled: PostOutcome = { kind: 'notApplied', reason: 'throttled', retryAfterMs: undefined }
    const limited = (count: number): BatchResult =>
      count > 2 ? { kind: 'tooLong', throttled } : taken(count)
    const { calls, postAll } = start({ maxRecords: 4 }, limited)
    expect(await postAll('abcd')).toEqual(Array(4).fill(throttled))
    expect(await postAll('abcd')).toEqual(Array(4).fill(accepted))
    expect(calls).toEqual(['[abcd]', '[ab]', '[cd]'])
  })

  it('reports the records of a refused batch as not applied, and posts the next records as a batch, if the mode is batch', async () => {
    const { calls, postAll } = start({ mode: 'batch' }, unsupported)
    const refused: PostOutcome = { kind: 'notApplied', reason: 'batchRefused', retryAfterMs: undefined }
    expect([await postAll('ab'), await postAll('cd')]).toEqual([[refused, refused], [refused, refused]]) // prettier-ignore
    expect(calls).toEqual(['[ab]', '[cd]'])
  })

  it('reports an unknown outcome for every record if posting a batch throws an unexpected error', async () => {
    const { postAll } = start({}, () => {
      throw new RangeError('Maximum call stack size exceeded')
    })
    expect(await postAll('abc')).toMatchObject(Array<PostOutcome>(3).fill(named('unreadableReply')))
  })
})

describe('createBatchCapability', () => {
  it('allows a single trial batch ten minutes after a failure, and any number of batches once the trial batch has worked', async () => {
    const clock = createManualClock()
    const capability = createBatchCapability(() => clock.nowMs())
    capability.failed()
    expect([capability.isOpen(), capability.mayTry()]).toEqual([false, false])
    await clock.pass(600_000)
    expect([capability.isOpen(), capability.mayTry(), capability.mayTry()]).toEqual([true, true, false])
    capability.worked(2)
    expect([capability.mayTry(), capability.mayTry(), capability.isOpen()]).toEqual([true, true, true])
  })
})
