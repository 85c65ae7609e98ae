import { describe, expect, it } from 'vitest'

import {
  batchOf,
  created,
  failuresOf,
  flatRecord,
  flatRecords,
  guid,
  postBatch,
  postRecords,
} from '../support/batch-request.ts'
import {
  type Answer,
  echoRecord,
  replyWith,
  type SeenRequest,
  startUpstream,
} from '../support/scripted-upstream.ts'
import { onePartner, startAdapter, startWithV3 } from '../support/start-adapter.ts'

const denied = (status: number): Answer =>
  replyWith(status, { statusCode: status, message: 'Denied by the gateway.' })

/** Builds an upstream answer that depends on the number of the learner (the last twelve digits of its GUID). */
function byLearner(answer: (learner: number) => Answer): Answer {
  return (seen, response) => answer(learnerOf(seen))(seen, response)
}

function learnerOf(seen: SeenRequest): number {
  return Number(/"Attendee":\{"ExternalID":"[0-9a-f-]{24}(\d{12})"/.exec(seen.body)?.[1])
}

describe('a batch whose credentials V3 denies', () => {
  it.each([401, 403])(
    'gets one response with the status %i in the error format of the gateway, and no further record is posted',
    async (status) => {
      const { upstream, adapter } = await startWithV3(denied(status), onePartner({ v3: { concurrency: 4 } }))
      const reply = await postBatch(adapter, batchOf([...flatRecords(30), '{"a"']))
      expect(reply.status).toBe(status)
      expect(JSON.parse(reply.text)).toEqual({ statusCode: status, message: 'Denied by the gateway.' })
      expect(reply.headers['www-authenticate']).toBe(status === 401 ? 'Bearer' : undefined)
      expect(upstream.seen.length).toBe(4)
      expect(adapter.events()).toContainEqual({
        msg: 'credentials denied by the upstream',
        status,
        partner: 'acme',
      })
    },
  )

  it.each(['', '<html>', '{"error":{}}'])(
    "gets the adapter's own error message when V3 denies with the body %j, which has no message",
    async (body) => {
      const { adapter } = await startWithV3(replyWith(401, body))
      const reply = await postBatch(adapter, batchOf(flatRecords(1)))
      expect(JSON.parse(reply.text)).toEqual({
        statusCode: 401,
        message:
          'The service denied the credentials (401). This copy was not applied. Send the same request again with valid credentials.',
      })
    },
  )

  it('gets the denial in the part of each denied record if V3 accepted another record before', async () => {
    const upstream = await startUpstream(byLearner((learner) => (learner === 1 ? echoRecord : denied(401))))
    const adapter = await startAdapter(upstream.url, onePartner({ v3: { concurrency: 1 } }))
    const parts = await postRecords(adapter, flatRecords(4))
    expect(failuresOf(parts)).toEqual([
      { status: 201, codes: 'record' },
      ...Array<unknown>(3).fill({ status: 401, codes: ['ADP_UPSTREAM_REFUSED'] }),
    ])
    expect(upstream.seen.length).toBe(4)
  })

  it.each([
    ['accepted', echoRecord, { status: 201, codes: 'record' }],
    ['refused', replyWith(400, { error: { code: 'Z1', message: '' } }), { status: 400, codes: ['Z1'] }],
    ['lost', replyWith(500), { status: 504, codes: ['ADP_OUTCOME_UNKNOWN'] }],
  ])(
    'has all its records posted if V3 denied some of the first records but another record was %s',
    async (_name, late, expected) => {
      const upstream = await startUpstream(
        byLearner((learner) => async (seen, response) => {
          if (learner !== 3) return (learner <= 4 ? denied(403) : echoRecord)(seen, response)
          // Holds record 3 until V3 has denied the three other records, so that the adapter has stopped posting when `late` answers.
          await upstream.arrived(4)
          await new Promise((resolve) => setImmediate(resolve))
          return late(seen, response)
        }),
      )
      const adapter = await startAdapter(upstream.url, onePartner({ v3: { concurrency: 4 } }))
      const parts = await postRecords(adapter, flatRecords(20))
      const denial = { status: 403, codes: ['ADP_UPSTREAM_REFUSED'] }
      expect(failuresOf(parts)).toEqual([denial, denial, expected, denial, ...created(16)])
      expect(upstream.seen.map(learnerOf).sort((one, other) => one - other)).toEqual(
        Array.from({ length: 20 }, (_, index) => index + 1),
      )
    },
  )

  it('keeps the order of the records of one learner and event even if the adapter stops posting and resumes', async () => {
    const records = [
      flatRecord(1, { Comment: 'a' }),
      flatRecord(2),
      flatRecord(1, { Comment: 'b' }),
      flatRecord(1, { Comment: 'c' }),
    ]
    const { upstream, adapter } = await startWithV3(
      byLearner((learner) => async (seen, response) => {
        if (learner === 1 && seen.body.includes('"a"')) return denied(401)(seen, response)
        if (learner === 2) await new Promise((resolve) => setTimeout(resolve, 50))
        return echoRecord(seen, response)
      }),
    )
    const parts = await postRecords(adapter, records)
    expect(parts.map(({ status }) => status)).toEqual([401, 201, 201, 201])
    const comments = upstream.seen
      .filter((seen) => learnerOf(seen) === 1)
      .map(({ body }) => /"Comment":"(.)"/.exec(body)?.[1])
    expect(comments).toEqual(['a', 'b', 'c'])
    expect(upstream.seen.length).toBe(4)
    expect(guid(1)).toBe((parts[2]?.json as { Learner: string }).Learner)
  })
})
