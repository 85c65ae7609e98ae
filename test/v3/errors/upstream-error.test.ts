import { describe, expect, it } from 'vitest'

import { parseJson, readUpstreamError, type UpstreamError } from '../../../src/v3/errors/upstream-error.ts'

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
  const rows: [name: string, body: unknown, form: UpstreamError['form'], entries: UpstreamError['entries']][] = [
    ['OData', { error: { code: 'a', message: 'b', target: 'c' } }, 'odata', [entry('a', 'b', 'c')]],
    ['OData with nothing in it', { error: {} }, 'odata', [entry(undefined, '')]],
    ['OData with members of other types', { error: { code: 1, message: [], target: {}, details: 'x' } }, 'odata', [entry(undefined, '')]],
    ['OData with nulls', { error: { code: null, message: 'b', target: null, details: null } }, 'odata', [entry(undefined, 'b')]],
    ['OData with empty details', { error: { code: 'a', message: 'b', details: [] } }, 'odata', [entry('a', 'b')]],
    ['OData with details', { error: { code: 'a', message: 'b', details: [{ code: 'd', message: 'e' }, { message: 'f', target: 'g' }] } }, 'odata', [entry('d', 'e'), entry(undefined, 'f', 'g')]],
    ['the gateway', { statusCode: 401, message: 'denied' }, 'gateway', [entry(undefined, 'denied')]],
    ['the V2 array', [{ Message: 'm', ErrorCode: 'c', ResourceIdentifier: '', SequenceID: 's' }, {}], 'array', [entry('c', 'm', ''), entry(undefined, '')]],
    ['an error that is text', { error: 'invalid_token' }, 'unreadable', []],
    ['an empty array', [], 'unreadable', []],
    ['another array', [1], 'unreadable', []],
    ['another object', { Message: 'm' }, 'unreadable', []],
    ['null', null, 'unreadable', []],
  ] // prettier-ignore
  it.each(rows)('reads %s', (_name, body, form, entries) => {
    expect(readUpstreamError(400, JSON.stringify(body))).toEqual({ status: 400, form, entries })
  })

  it('reads no body that is longer than any error', () => {
    const body = JSON.stringify({ error: { code: 'a', message: 'b'.repeat(70_000) } })
    expect(readUpstreamError(400, body)).toEqual({ status: 400, form: 'unreadable', entries: [] })
  })

  it.each(['', '<html>', '{"error":', '\u0000', '[{]'])('takes %j for unreadable', (body) => {
    expect(readUpstreamError(422, body)).toEqual({ status: 422, form: 'unreadable', entries: [] })
  })
})

describe('parseJson', () => {
  it.each([
    ['{"a":1}', { a: 1 }],
    ['\ufeff{"a":1}', { a: 1 }],
    ['\ufeff\ufeff1', undefined],
    ['', undefined],
    ['undefined', undefined],
  ])('gives the value of %j', (text, value) => {
    expect(parseJson(text)).toEqual(value)
  })

  it.each([
    ['a string', `{"a":${JSON.stringify('"[,{\\'.repeat(40_000))}}`, true],
    ['brackets', `${'['.repeat(40_000)}${']'.repeat(40_000)}`, false],
    ['members', `{${Array.from({ length: 20_000 }, (_, n) => `"${n}":1`).join()}}`, false],
    ['few members and blanks', `{"a":1,"b":[]}${' '.repeat(70_000)}`, true],
  ])('limits the brackets and commas of a long text: %s', (_what, text, isRead) => {
    expect(parseJson(text, 100) !== undefined).toBe(isRead)
    expect(parseJson(text)).toBeDefined()
  })
})
