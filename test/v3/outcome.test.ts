import { describe, expect, it } from 'vitest'

import {
  parsePostReply,
  type PostOutcome,
  readUpstreamError,
  type UpstreamError,
} from '../../src/v3/outcome.ts'
import { readRetryAfter } from '../../src/upstream/index.ts'

const entry = (
  code: string | undefined,
  message: string,
  target?: string,
): UpstreamError['entries'][number] => ({
  code,
  message,
  target,
})

describe('readUpstreamError', () => {
  it('reads the first 16 errors of a reply and counts the others', () => {
    const details = Array.from({ length: 1_000 }, (_, n) => ({ code: `E${n}`, message: 'm' }))
    const array = details.map(({ code }) => ({ ErrorCode: code, Message: 'm', ResourceIdentifier: '' }))
    for (const body of [{ error: { code: 'X', message: 'm', details } }, array]) {
      const { entries, omitted } = readUpstreamError(400, JSON.stringify(body))
      expect([entries.length, entries.at(-1)?.code, omitted]).toEqual([16, 'E15', 984])
    }
  })

  const rows: [name: string, body: unknown, form: UpstreamError['form'], entries: UpstreamError['entries'], outer?: UpstreamError['outer']][] = [
    ['an OData error', { error: { code: 'a', message: 'b', target: 'c' } }, 'odata', [entry('a', 'b', 'c')]],
    ['an empty OData error', { error: {} }, 'odata', [entry(undefined, '')]],
    ['an OData error with members of other types', { error: { code: 1, message: [], target: {}, details: 'x' } }, 'odata', [entry(undefined, '')]],
    ['an OData error with nulls', { error: { code: null, message: 'b', target: null, details: null } }, 'odata', [entry(undefined, 'b')]],
    ['an OData error with empty details', { error: { code: 'a', message: 'b', details: [] } }, 'odata', [entry('a', 'b')]],
    ['an OData error with details', { error: { code: 'a', message: 'b', details: [{ code: 'd', message: 'e' }, { message: 'f', target: 'g' }] } }, 'odata', [entry('d', 'e'), entry(undefined, 'f', 'g')], entry('a', 'b')],
    ['an error of the gateway', { statusCode: 401, message: 'denied' }, 'gateway', [entry(undefined, 'denied')]],
    ['a V2 array', [{ Message: 'm', ErrorCode: 'c', ResourceIdentifier: '', SequenceID: 's' }, {}], 'array', [entry('c', 'm', ''), entry(undefined, '')]],
    ['an error that is text as unreadable', { error: 'invalid_token' }, 'unreadable', []],
    ['an empty array as unreadable', [], 'unreadable', []],
    ['an array of other values as unreadable', [1], 'unreadable', []],
    ['another object as unreadable', { Message: 'm' }, 'unreadable', []],
    ['null as unreadable', null, 'unreadable', []],
  ] // prettier-ignore
  it.each(rows)('reads %s', (_name, body, form, entries, outer) => {
    expect(readUpstreamError(400, JSON.stringify(body))).toEqual({ status: 400, form, entries, outer })
  })

  it('does not read a body that is longer than any real error body', () => {
    const body = JSON.stringify({ error: { code: 'a', message: 'b'.repeat(70_000) } })
    expect(readUpstreamError(400, body)).toEqual({ status: 400, form: 'unreadable', entries: [] })
  })

  it.each(['', '<html>', '{"error":', '\u0000', '[{]'])('reports %j as unreadable', (body) => {
    expect(readUpstreamError(422, body)).toEqual({ status: 422, form: 'unreadable', entries: [] })
  })
})

const id = 'abcdef01-0000-4000-8000-000000000001'
const reply = JSON.stringify({ ExternalID: id })
const now = Date.parse('2026-06-10T10:00:00Z')

describe('parsePostReply', () => {
  const accepted: PostOutcome = { kind: 'accepted', reply: { ExternalID: id } }
  const unreadable: PostOutcome = { kind: 'unknown', reason: 'unreadableReply' }
  const serverError: PostOutcome = { kind: 'unknown', reason: 'serverError' }
  const refused = (status: number): PostOutcome => ({
    kind: 'refused',
    error: { status, form: 'unreadable', entries: [] },
  })
  const notApplied = (
    reason: 'throttled' | 'unavailable' | 'redirected',
    retryAfterMs?: number,
  ): PostOutcome => ({
    kind: 'notApplied',
    reason,
    retryAfterMs,
  })
  const rows: [status: number, body: string, outcome: PostOutcome][] = [
    [200, reply, accepted], [201, reply, accepted], [201, `\ufeff${reply}`, accepted], [299, reply, accepted],
    [200, '', unreadable], [200, '<html>', unreadable], [201, '{}', unreadable], [204, '', unreadable], [202, '{"status":"queued"}', unreadable],
    [300, reply, notApplied('redirected')], [302, '', notApplied('redirected')], [303, '', unreadable], [304, '', notApplied('redirected')], [399, '', notApplied('redirected')],
    [400, '', refused(400)], [401, '', refused(401)], [403, reply, refused(403)], [404, '', refused(404)], [409, '', refused(409)], [499, '', refused(499)],
    [408, '', notApplied('unavailable')], [503, reply, notApplied('unavailable')], [429, '', notApplied('throttled')],
    [429, '{"statusCode":429,"message":"Rate limit is exceeded. Try again in 7 seconds."}', notApplied('throttled', 7_000)],
    [500, reply, serverError], [501, reply, refused(501)], [502, '', serverError], [504, '', serverError], [599, '', serverError],
    [600, '', serverError], [999, reply, serverError], [100, '', serverError], [0, '', serverError],
  ] // prettier-ignore
  it.each(rows)('returns the outcome for the status %i and the body %j', (status, body, outcome) => {
    expect(parsePostReply(status, body, undefined, now)).toEqual(outcome)
  })

  it('never returns accepted or refused for a status below 200 or above 499, except 501', () => {
    for (const status of Array.from({ length: 1_000 }, (_, index) => index)) {
      const { kind } = parsePostReply(status, reply, undefined, now)
      const known = status >= 200 && status < 300 ? 'accepted' : 'refused'
      const sure = (status >= 200 && status < 500 && status !== 303) || status === 501
      expect(sure ? [known, 'notApplied'] : ['unknown', 'notApplied']).toContain(kind)
    }
  })
})

describe('readRetryAfter', () => {
  const rows: [header: string | undefined, body: string, waitMs: number | undefined][] = [
    ['3', '', 3_000],
    [' 0 ', '', 0],
    ['Wed, 10 Jun 2026 10:00:09 GMT', '', 9_000],
    ['Wed, 10 Jun 2026 09:00:00 GMT', '', 0],
    ['3', 'Try again in 9 seconds', 3_000],
    [undefined, 'Rate limit is exceeded. TRY AGAIN IN 12 SECONDS.', 12_000],
    [undefined, 'Try again in 1234567 seconds', undefined],
    [undefined, '', undefined],
    ['', 'Try again in 9 seconds', undefined],
    ['soon', '', undefined],
    ['-1x', '', undefined],
  ]
  it.each(rows)('returns the wait for the Retry-After header %j and the body %j', (header, body, waitMs) => {
    expect(readRetryAfter(header, body, now)).toBe(waitMs)
  })
})
