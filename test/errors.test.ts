import { describe, expect, it } from 'vitest'

import { AdapterError, type ErrorCode, errorRules, formatLocation, toErrorBody } from '../src/errors.ts'

const codes = Object.keys(errorRules) as ErrorCode[]

describe('errorRules', () => {
  it.each(codes)('assigns the error %s an HTTP status in the range of its error class', (code) => {
    const rule = errorRules[code]
    const range = {
      request: [400, 415],
      record: [400, 405],
      upstream: [400, 504],
      configuration: [500, 500],
      internal: [500, 504],
    }
    const [least = 0, most = 0] = range[rule.class]
    expect(rule.status).toBeGreaterThanOrEqual(least)
    expect(rule.status).toBeLessThanOrEqual(most)
    expect(new AdapterError(code, 'x').status).toBe(rule.status)
  })

  it('marks an unknown outcome as not retryable (product contract 3)', () => {
    for (const code of ['ADP_OUTCOME_UNKNOWN', 'ADP_JOURNAL_LOST', 'ADP_RESULT_LOST'] as const)
      expect(errorRules[code]).toMatchObject({ status: 504, retryable: false })
    expect(codes.filter((code) => errorRules[code].retryable)).toEqual([
      'ADP_SLOW_CLIENT',
      'ADP_UPSTREAM_UNAVAILABLE',
      'ADP_V3_CREDENTIALS',
      'ADP_BUDGET_EXCEEDED',
      'ADP_JOURNAL_UNAVAILABLE',
      'ADP_JOURNAL_DAMAGED',
      'ADP_STAGE_UNKNOWN',
      'ADP_OVERLOADED',
    ])
  })
})

describe('AdapterError', () => {
  it('has the given code, message, location, details and cause, and no cause if no cause was given', () => {
    const cause = new Error('why')
    const error = new AdapterError('ADP_JSON', 'text', {
      at: { part: 3 },
      cause,
      details: [{ code: 'c', message: 'm' }],
    })
    expect(error).toMatchObject({
      name: 'AdapterError',
      code: 'ADP_JSON',
      message: 'text',
      at: { part: 3 },
      details: [{ code: 'c', message: 'm' }],
      cause,
    })
    const bare = new AdapterError('ADP_JSON', 'text')
    expect([bare.at, bare.details, 'cause' in bare]).toEqual([{}, [], false])
    expect(bare).toBeInstanceOf(Error)
  })
})

it.each([
  [{}, ''],
  [{ offset: 0 }, 'offset 0'],
  [{ part: 3, contentId: '7', offset: 1024 }, 'part 3, Content-ID 7, offset 1024'],
  [
    { changeset: 1, part: 2, contentId: '', offset: 3, path: 'a[0].b' },
    'changeset 1, part 2, Content-ID , offset 3, a[0].b',
  ],
])('formatLocation returns for %j the text %j', (at, text) => {
  expect(formatLocation(at)).toBe(text)
})

describe('toErrorBody', () => {
  it('returns the code, the message and the details, and adds the location to the first detail (batch-wire 5)', () => {
    const details = [{ code: 'x', message: 'y', target: 'z' }]
    expect(
      toErrorBody(new AdapterError('ADP_HEADER', 'no colon', { at: { part: 2, offset: 9 }, details })),
    ).toEqual({
      error: {
        code: 'ADP_HEADER',
        message: 'no colon',
        details: [{ code: 'ADP_HEADER', message: 'no colon', target: 'part 2, offset 9' }, ...details],
      },
    })
    expect(toErrorBody(new AdapterError('ADP_HOST', 'two'))).toEqual({
      error: { code: 'ADP_HOST', message: 'two', details: [] },
    })
  })

  it('reveals no text of an internal error', () => {
    const error = new AdapterError('ADP_INTERNAL', 'hush', {
      at: { path: 'hush' },
      details: [{ code: 'hush', message: 'hush' }],
      cause: new Error('hush'),
    })
    expect(JSON.stringify(toErrorBody(error))).not.toContain('hush')
    expect(toErrorBody(error).error).toMatchObject({ code: 'ADP_INTERNAL', details: [] })
  })
})
