import { describe, expect, it } from 'vitest'

import { startService } from '../clients/support/start-service.ts'
import { flatRecord, guid } from '../support/batch-request.ts'
import { exchange, RawClient } from '../support/raw-client.ts'
import { type Answer, echoRecord, replyWith } from '../support/scripted-upstream.ts'
import { codeOf, onePartner, startWithV3 } from '../support/start-adapter.ts'

const path = '/x/V2/Attendance/AttendanceRecords'

describe('a single record that a client posts without a batch', () => {
  it("gets a Location in the spelling of the client's path, from which the client can read the record", async () => {
    const { sandbox, adapter, register, headers } = await startService()
    const spelt = '/a%20b/v2/Attendance/attendanceRecords'
    const reply = await adapter.request('POST', `${spelt}/`, { body: JSON.stringify(register[0]), headers })
    const { ExternalID } = JSON.parse(reply.text) as { ExternalID: string }
    const address = `${adapter.url}${spelt}(${ExternalID})`
    expect([reply.status, reply.headers['location'], reply.headers['odata-version']]).toEqual([
      201,
      address,
      '4.0',
    ])
    const read = await adapter.request('GET', address.slice(adapter.url.length), { headers })
    expect([read.status, JSON.parse(read.text)]).toMatchObject([
      200,
      { ExternalID, Learner: register[0]?.Learner },
    ])
    const direct = await sandbox.request('POST', path, { body: JSON.stringify(register[3]) })
    const made = JSON.parse(direct.text) as { ExternalID: string }
    expect([direct.status, direct.headers['location'], direct.headers['odata-version']]).toEqual([
      201,
      `${sandbox.url}${path}(${made.ExternalID})`,
      '4.0',
    ])
  })

  it('gets no Location if V3 created no record', async () => {
    const { adapter } = await startWithV3(replyWith(400, [{ Message: 'm', ErrorCode: 'ATT_VAL_2' }]))
    const reply = await adapter.request('POST', path, { body: JSON.stringify(flatRecord(1)) })
    expect([reply.status, reply.headers['location']]).toEqual([400, undefined])
  })

  it.each([401, 403])('gets a denial (%i) of V3 in the error format of the gateway', async (status) => {
    const { adapter } = await startWithV3(replyWith(status, { statusCode: status, message: 'm' }))
    const reply = await adapter.request('POST', path, { body: JSON.stringify(flatRecord(1)) })
    expect([reply.status, JSON.parse(reply.text)]).toEqual([status, { statusCode: status, message: 'm' }])
  })

  const rows: [name: string, answer: Answer, body: string | Buffer, status: number, code: string, tally: string][] = [
    ['a refusal of V3', replyWith(400, [{ Message: 'm', ErrorCode: 'ATT_VAL_2' }]), JSON.stringify(flatRecord(1)), 400, 'ATT_VAL_2', 'refused'],
    ['a 500 of V3', replyWith(500), JSON.stringify(flatRecord(1)), 504, 'ADP_OUTCOME_UNKNOWN', 'unknown'],
    ['an answer of V3 about another record', replyWith(201, { ExternalID: guid(9), Attendee: { ExternalID: guid(8) } }), JSON.stringify(flatRecord(1)), 504, 'ADP_OUTCOME_UNKNOWN', 'unknown'],
    ['a 429 of V3', replyWith(429), JSON.stringify(flatRecord(1)), 503, 'ADP_UPSTREAM_UNAVAILABLE', 'notApplied'],
    ['broken JSON', echoRecord, '{"Present"', 400, 'ADP_JSON', 'refused'],
    ['an empty body', echoRecord, '', 400, 'ADP_JSON', 'refused'],
    ['a missing member', echoRecord, JSON.stringify({ ...flatRecord(1), Learner: undefined }), 400, 'ADP_FIELD', 'refused'],
    ['a body that is not UTF-8', echoRecord, Buffer.from('{"Comment":"caf\u00e9"}', 'latin1'), 400, 'ADP_CHARSET', 'refused'],
  ] // prettier-ignore
  it.each(rows)(
    'gets the status and error array of a batch part for %s',
    async (_name, answer, body, status, code, tally) => {
      const { adapter } = await startWithV3(answer, onePartner({ v3: { budgetMs: 1_500 } }))
      const reply = await adapter.request('POST', path, { body })
      expect(reply.status).toBe(status)
      expect(JSON.parse(reply.text)).toEqual([
        {
          Message: expect.any(String) as unknown,
          ErrorCode: code,
          ResourceIdentifier: '',
          SequenceID: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
        },
      ])
      expect(adapter.events().at(-1)).toMatchObject({ records: 1, accepted: 0, [tally]: 1 })
    },
  )

  it.each([
    ['iso-8859-1', 'latin1', 201],
    ['utf-8', 'utf8', 201],
    ['utf-16', 'utf16le', 400],
  ] as const)(
    'is decoded by its charset or rejected: %s (batch-wire F26)',
    async (charset, encoding, status) => {
      const { upstream, adapter } = await startWithV3()
      const reply = await adapter.request('POST', path, {
        headers: { 'Content-Type': `application/json;charset=${charset}` },
        body: Buffer.from(JSON.stringify(flatRecord(1, { Comment: 'caf\u00e9' })), encoding),
      })
      expect(reply.status).toBe(status)
      expect(reply.text).toContain(status === 201 ? '"Comment":"caf\u00e9"' : 'ADP_CHARSET')
      expect(upstream.seen.length).toBe(status === 201 ? 1 : 0)
    },
  )

  it('gets 204 if the client prefers a minimal reply', async () => {
    const { upstream, adapter } = await startWithV3()
    const body = JSON.stringify(flatRecord(1))
    const minimal = await adapter.request('POST', path, { headers: { Prefer: 'return=minimal' }, body })
    expect([minimal.status, minimal.text, minimal.headers['content-type']]).toEqual([204, '', undefined])
    const large = await adapter.request('POST', path, { body: Buffer.alloc(1_048_577, ' ') })
    expect(codeOf(large)).toBe('413 ADP_TOO_LARGE')
    expect(upstream.seen.length).toBe(1)
  })

  it('is posted even if its client disconnects', async () => {
    let answer: (() => void) | undefined
    const { upstream, adapter } = await startWithV3((seen, response) => {
      answer = () => void echoRecord(seen, response)
    })
    const body = JSON.stringify(flatRecord(1))
    const client = await RawClient.open(adapter.port)
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nOcp-Apim-Subscription-Key: k\r\nAuthorization: bearer t\r\n`
    client.send(`${head}Content-Length: ${body.length}\r\n\r\n${body}`)
    await upstream.arrived(1)
    client.socket.resetAndDestroy()
    const closed = adapter.app.close()
    answer?.()
    await closed
    expect(adapter.events().at(-2)).toMatchObject({ msg: 'batch answered', accepted: 1 })
    await expect(exchange(adapter.port, '')).rejects.toThrow(/ECONNREFUSED/)
  })
})
