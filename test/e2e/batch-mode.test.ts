import { describe, expect, it } from 'vitest'

import { startSandbox } from '../sandbox/start-sandbox.ts'
import {
  batchOf,
  created,
  failuresOf,
  flatRecord,
  flatRecords,
  guid,
  outcomesOf,
  postBatch,
  postRecords,
  readBatchReply,
  statusesOf,
} from '../support/batch-request.ts'
import { echoRecord, replyWith, startUpstream } from '../support/scripted-upstream.ts'
import { onePartner, startAdapter } from '../support/start-adapter.ts'
import { sandboxRegister } from './support/sandbox-register.ts'

const formats = ['multipart', 'json'] as const

describe.each(formats)(
  'the adapter, when it posts a register as a V3 batch in the format %s',
  (batchFormat) => {
    it('makes a single call for 30 marks, so that the limit of five calls a second causes no delay', async () => {
      const sandbox = await startSandbox({ callsPerSecond: 5 })
      const v3 = { callsPerSecond: 5, writeMode: 'batch', batchFormat }
      const adapter = await startAdapter(sandbox.url, onePartner({ v3 }))
      const register = await sandboxRegister(sandbox, 30)
      const startedMs = performance.now()
      const reply = await postBatch(adapter, register.batch, register.headers)
      expect(performance.now() - startedMs).toBeLessThan(4_900)
      expect(outcomesOf(reply)).toEqual(created(30))
      expect(await register.written()).toEqual(register.learners)
    })

    it('returns 201 for all other records when V3 rejects one record', async () => {
      const sandbox = await startSandbox()
      const adapter = await startAdapter(sandbox.url, onePartner({ v3: { writeMode: 'batch', batchFormat } }))
      const register = await sandboxRegister(sandbox, 5)
      const body = register.batch.body.replaceAll(register.learners[1] ?? '', guid(7))
      const parts = readBatchReply(await postBatch(adapter, { ...register.batch, body }, register.headers))
      expect(parts.map(({ status }) => status).sort()).toEqual([201, 201, 201, 201, 400])
      expect(await register.written()).toEqual(register.learners.filter((_, index) => index !== 1))
    })

    it('posts single records if V3 supports no batches, but reports each record as not applied with writeMode: batch', async () => {
      const sandbox = await startSandbox({ batch: false })
      const register = await sandboxRegister(sandbox, 5)
      const [strict, auto] = await Promise.all(
        ['batch', 'auto'].map((writeMode) =>
          startAdapter(sandbox.url, onePartner({ v3: { writeMode, batchFormat } })),
        ),
      )
      if (strict === undefined || auto === undefined) throw new Error('no adapter')
      const refused = readBatchReply(await postBatch(strict, register.batch, register.headers))
      expect(failuresOf(refused)).toEqual(Array(5).fill({ status: 502, codes: ['ADP_UPSTREAM_PROTOCOL'] }))
      expect(await register.written()).toEqual([])
      const taken = readBatchReply(await postBatch(auto, register.batch, register.headers))
      expect(failuresOf(taken)).toEqual(created(5))
      expect(await register.written()).toEqual(register.learners)
    })

    it('reports every record as unknown, and posts no record again, if the connection is lost after V3 applied the batch', async () => {
      const sandbox = await startSandbox()
      const register = await sandboxRegister(sandbox, 4)
      await sandbox.put('faults', { kind: 'reset', apply: true, path: '$batch', count: 1 })
      const adapter = await startAdapter(
        sandbox.url,
        onePartner({ v3: { writeMode: 'auto', batchFormat, batchRecordMs: 1 } }),
      )
      const parts = readBatchReply(await postBatch(adapter, register.batch, register.headers))
      expect(failuresOf(parts)).toEqual(Array(4).fill({ status: 504, codes: ['ADP_OUTCOME_UNKNOWN'] }))
      expect(await register.written()).toEqual(register.learners)
    })
  },
)

it('the adapter accepts the complete parts of a V3 batch reply if the reply breaks off', async () => {
  const sandbox = await startSandbox()
  const register = await sandboxRegister(sandbox, 6)
  await sandbox.put('faults', { kind: 'truncate', bytes: 2_500, path: '$batch', count: 1 })
  const v3 = { writeMode: 'batch', batchRecordMs: 1 }
  const adapter = await startAdapter(sandbox.url, onePartner({ v3 }))
  const statuses = statusesOf(await postBatch(adapter, register.batch, register.headers))
  const taken = statuses.lastIndexOf(201) + 1
  expect([taken > 0, taken < 6]).toEqual([true, true])
  expect(statuses).toEqual([...Array<number>(taken).fill(201), ...Array<number>(6 - taken).fill(504)])
})

describe('a V3 batch', () => {
  /** Starts a V3 service that answers every record of a batch in the order of the request. */
  const serve = () =>
    startUpstream((seen, response) => {
      if (!seen.url.endsWith('/$batch')) return echoRecord(seen, response)
      const { requests } = JSON.parse(seen.body) as { requests: { id: string; body: object }[] }
      const responses = requests.map(({ id, body }) => ({ id, status: 201, body: { ...body, ExternalID: guid(seen.index + 1) } })) // prettier-ignore
      return replyWith(200, { responses })(seen, response)
    })
  const json = { writeMode: 'batch', batchFormat: 'json' }

  it('has at most 100 records', async () => {
    const upstream = await serve()
    const adapter = await startAdapter(upstream.url, onePartner({ v3: json }))
    const parts = await postRecords(adapter, flatRecords(201))
    expect(failuresOf(parts)).toEqual(created(201))
    const sizes = upstream.seen.map(
      ({ body }) => (JSON.parse(body) as { requests?: unknown[] }).requests?.length,
    )
    expect(sizes).toEqual([100, 100, undefined])
  })

  it('never contains two records of one learner and event', async () => {
    const upstream = await serve()
    const adapter = await startAdapter(upstream.url, onePartner({ v3: json }))
    const records = [1, 2, 3].flatMap((minutes) => [flatRecord(1, { MinutesLate: minutes }), flatRecord(2, { MinutesLate: minutes })]) // prettier-ignore
    const parts = await postRecords(adapter, records)
    expect(failuresOf(parts)).toEqual(created(6))
    const minutes = upstream.seen.map(({ body }) => [...body.matchAll(/"MinutesLate":(\d)/g)].map(([, text]) => text).join('')) // prettier-ignore
    expect(minutes).toEqual(['11', '22', '33'])
  })

  it('is posted again as a whole after V3 answered 429', async () => {
    const upstream = await startUpstream((seen, response) => {
      if (seen.index === 0) return replyWith(429, '', { 'Retry-After': '1' })(seen, response)
      const { requests } = JSON.parse(seen.body) as { requests: { id: string; body: object }[] }
      return replyWith(200, { responses: requests.map(({ id, body }) => ({ id, status: 201, body: { ...body, ExternalID: guid(5) } })) })(seen, response) // prettier-ignore
    })
    const adapter = await startAdapter(upstream.url, onePartner({ v3: { ...json, callsPerSecond: 5 } }))
    const parts = await postRecords(adapter, flatRecords(8))
    expect([failuresOf(parts), upstream.seen.length]).toEqual([created(8), 2])
  })

  it.each([
    [413, 20, [20, 10, 5, 5, 5, 5]],
    [429, 10, [10, 5, 5]],
  ])(
    'is split, and loses no record, when V3 rejects it as too large with the status %s',
    async (status, count, sizes) => {
      const seenSizes: number[] = []
      const upstream = await startUpstream((seen, response) => {
        const { requests } = JSON.parse(seen.body) as { requests: { id: string; body: object }[] }
        seenSizes.push(requests.length)
        if (requests.length > 5) return replyWith(status, { error: { code: String(status), message: 'no' } })(seen, response) // prettier-ignore
        return replyWith(200, { responses: requests.map(({ id, body }) => ({ id, status: 201, body: { ...body, ExternalID: guid(5) } })) })(seen, response) // prettier-ignore
      })
      const adapter = await startAdapter(upstream.url, onePartner({ v3: json }))
      expect(failuresOf(await postRecords(adapter, flatRecords(count)))).toEqual(created(count))
      expect(seenSizes).toEqual(sizes)
      await postRecords(adapter, flatRecords(8))
      expect(seenSizes.slice(sizes.length)).toEqual([5, 3])
    },
  )

  it('fails only for a record that is itself too large for V3', async () => {
    const upstream = await startUpstream((seen, response) => {
      if (seen.body.includes('too large')) return replyWith(413, { error: { code: '413', message: 'Too large.' } })(seen, response) // prettier-ignore
      if (!seen.url.endsWith('/$batch')) return echoRecord(seen, response)
      const { requests } = JSON.parse(seen.body) as { requests: { id: string; body: object }[] }
      return replyWith(200, { responses: requests.map(({ id, body }) => ({ id, status: 201, body: { ...body, ExternalID: guid(5) } })) })(seen, response) // prettier-ignore
    })
    const adapter = await startAdapter(upstream.url, onePartner({ v3: json }))
    const records = flatRecords(8).with(5, flatRecord(6, { Comment: 'too large' }))
    const outcomes = failuresOf(await postRecords(adapter, records))
    expect(outcomes).toEqual(created(8).with(5, { status: 400, codes: ['413'] }))
  })

  it("causes a single denial of the client's whole request when V3 denies the batch", async () => {
    const upstream = await startUpstream(replyWith(403, { statusCode: 403, message: 'No.' }))
    const adapter = await startAdapter(upstream.url, onePartner({ v3: json }))
    const reply = await postBatch(adapter, batchOf(flatRecords(8)))
    expect([reply.status, JSON.parse(reply.text), upstream.seen.length]).toEqual([
      403,
      { statusCode: 403, message: 'No.' },
      1,
    ])
  })
})
