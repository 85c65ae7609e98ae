import { describe, expect, it } from 'vitest'

import { type BatchChoice, createBatchCapability, createBatchPost } from '../../../src/v3/client/batch.ts'
import type { BatchResult } from '../../../src/v3/client/batch-reply.ts'
import type { PostOutcome, UnknownReason } from '../../../src/v3/index.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const named = (reason: UnknownReason): PostOutcome => ({ kind: 'unknown', reason })
const inBatch = named('serverError')
const alone = named('otherRecord')

/** Posts records in one turn; `answer` is what each batch gets. */
function start(choice: Partial<BatchChoice>, answer: (count: number) => BatchResult) {
  const clock = createManualClock()
  const calls: string[] = []
  const post = createBatchPost(
    { mode: 'auto', format: 'multipart', maxRecords: 3, concurrency: 2, ...choice },
    createBatchCapability(() => clock.nowMs()),
    (records) => {
      calls.push(`[${records.join('')}]`)
      return Promise.resolve(answer(records.length))
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
  it('auto: posts one by one what a service without batch refused, and asks again after ten minutes with one batch', async () => {
    const { clock, calls, postAll } = start({}, unsupported)
    expect(await postAll('abc')).toEqual([alone, alone, alone])
    await postAll('de')
    await clock.pass(600_000)
    await postAll('fghij')
    expect(calls.filter((call) => call.startsWith('['))).toEqual(['[abc]', '[fgh]'])
    expect(calls.filter((call) => !call.startsWith('[')).sort()).toEqual(Array.from('abcdefghij'))
  })

  it('auto: repeats nothing of a batch whose answers cannot be told apart, and sends no further one', async () => {
    const { calls, postAll } = start({}, answered(false))
    expect(await postAll('abc')).toEqual([inBatch, inBatch, inBatch])
    expect(await postAll('de')).toEqual([alone, alone])
    expect(calls).toEqual(['[abc]', 'd', 'e'])
  })

  it('batch: tells every record of a refused batch as not applied, and goes on with batches', async () => {
    const { calls, postAll } = start({ mode: 'batch' }, unsupported)
    const refused: PostOutcome = { kind: 'notApplied', reason: 'batchRefused', retryAfterMs: undefined }
    expect([await postAll('ab'), await postAll('cd')]).toEqual([[refused, refused], [refused, refused]]) // prettier-ignore
    expect(calls).toEqual(['[ab]', '[cd]'])
  })

  it('gives every record of a batch an unknown outcome where its call fails in a way that nobody foresaw', async () => {
    const { postAll } = start({}, () => {
      throw new RangeError('Maximum call stack size exceeded')
    })
    expect(await postAll('abc')).toEqual(Array<PostOutcome>(3).fill(named('unreadableReply')))
  })
})

describe('createBatchCapability', () => {
  it('stays open once a batch worked', async () => {
    const clock = createManualClock()
    const capability = createBatchCapability(() => clock.nowMs())
    capability.failed()
    expect([capability.isOpen(), capability.mayTry()]).toEqual([false, false])
    await clock.pass(600_000)
    expect([capability.isOpen(), capability.mayTry(), capability.mayTry()]).toEqual([true, true, false])
    capability.worked()
    expect([capability.mayTry(), capability.mayTry(), capability.isOpen()]).toEqual([true, true, true])
  })
})
