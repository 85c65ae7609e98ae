import { describe, expect, it } from 'vitest'

import {
  v2ErrorRules,
  type ErrorMappingRule,
  toV2Failure,
  toV2Refusal,
  type FailedOutcome,
  withoutPlaces,
} from '../../src/translate/index.ts'
import { readUpstreamError } from '../../src/v3/outcome.ts'
import type { UpstreamErrorEntry } from '../../src/v3/index.ts'

function codesOf(
  entries: Partial<UpstreamErrorEntry>[],
  mapping: readonly ErrorMappingRule[] = v2ErrorRules,
  status = 400,
): string[] {
  const whole = entries.map((entry) => ({ code: undefined, message: '', target: undefined, ...entry }))
  return toV2Refusal({ status, form: 'odata', entries: whole }, mapping).errors.map(({ code }) => code)
}

describe('toV2Refusal', () => {
  const rows: [entry: Partial<UpstreamErrorEntry>, code: string][] = [
    [{ code: 'ATT_VAL_2' }, 'ATT_VAL_2'],
    [{ code: 'att_val_3', message: 'The event does not exist' }, 'ATT_VAL_3'],
    [{ code: 'X', target: 'Event', message: 'Not found' }, 'ATT_VAL_2'],
    [{ target: '/Event/ExternalID', message: 'no such id' }, 'ATT_VAL_2'],
    [{ target: 'AttendanceCode', message: 'is INVALID' }, 'ATT_VAL_3'],
    [{ target: 'Event', message: 'is closed' }, 'ADP_UPSTREAM_REFUSED'],
    [{ target: 'EventType', message: 'not found' }, 'ADP_UPSTREAM_REFUSED'],
    [{ target: 'Event/Type', message: 'Unknown value' }, 'ADP_UPSTREAM_REFUSED'],
    [{ target: 'Event', message: 'Invalid property "Kind"' }, 'ADP_UPSTREAM_REFUSED'],
    [{ target: 'AttendanceCode/ExternalID', message: 'The field does not exist' }, 'ADP_UPSTREAM_REFUSED'],
    [{ code: '400', message: 'Property "Kind" of "Event" does not exist' }, '400'],
    [
      { message: "The property 'Event' does not exist on type 'Svc.AttendanceRecord'." },
      'ADP_UPSTREAM_REFUSED',
    ],
    [{ message: 'AttendanceCode: member Kind not found' }, 'ADP_UPSTREAM_REFUSED'],
    [{ message: 'The attendable event with this id does not exist.' }, 'ATT_VAL_2'],
    [{ message: 'Session was not found' }, 'ATT_VAL_2'],
    [{ message: 'AttendanceCode could not be resolved: not found' }, 'ATT_VAL_3'],
    [{ code: 'E', message: 'The event is fine. The learner was not found.' }, 'E'],
    [{ code: 'LOCKED', message: 'the register is closed' }, 'LOCKED'],
    [{ code: '', message: 'odd' }, 'ADP_UPSTREAM_REFUSED'],
    [{}, 'ADP_UPSTREAM_REFUSED'],
  ]
  it.each(rows)('maps the V3 error %j to the V2 code %s (service.md 7)', (entry, code) => {
    expect(codesOf([entry])).toEqual([code])
  })

  it('limits the errors of a part to 4,096 characters, and counts the omitted errors', () => {
    const entryOf = (message: string): UpstreamErrorEntry => ({ code: 'E', message, target: undefined })
    const long = Array.from({ length: 5 }, (_, n) => entryOf(`${n}${'x'.repeat(3_000)}`))
    const { errors } = toV2Refusal({ status: 400, form: 'odata', entries: long, omitted: 7 }, v2ErrorRules)
    expect(errors).toEqual([
      { code: 'E', message: `0${'x'.repeat(1_998)}…` },
      { code: 'E', message: `1${'x'.repeat(1_998)}…` },
      { code: 'ADP_UPSTREAM_REFUSED', message: expect.stringMatching(/\b10 more/) as unknown },
    ])
  })

  it('applies the first rule of the error mapping whose conditions all hold', () => {
    const to = (code: string): ErrorMappingRule['to'] => ({ code, message: code })
    const mapping: ErrorMappingRule[] = [
      { status: 409, code: /A/, message: /B/, target: /C/, to: to('all') },
      { status: 409, code: /A/, to: to('two') },
      { status: 422, to: to('status') },
      { target: /^$/, to: to('noTarget') },
    ]
    expect(
      codesOf(
        [
          { code: 'A', message: 'B', target: 'C' },
          { code: 'A', target: 'x' },
        ],
        mapping,
        409,
      ),
    ).toEqual(['all', 'two'])
    expect(codesOf([{ code: 'A', target: 'x' }], mapping, 422)).toEqual(['status'])
    expect(codesOf([{ code: 'Z' }, { code: 'Y', target: 'x' }], mapping)).toEqual(['noTarget', 'Y'])
  })

  it('reports each error once, and shortens long codes and messages', () => {
    expect(
      codesOf([{ code: 'ATT_VAL_2' }, { target: 'Event', message: 'unknown' }, { code: 'ATT_VAL_3' }]),
    ).toEqual(['ATT_VAL_2', 'ATT_VAL_3'])
    const { errors } = toV2Refusal(
      {
        status: 400,
        form: 'odata',
        entries: [{ code: 'c'.repeat(9_999), message: 'm'.repeat(9_999), target: undefined }],
      },
      v2ErrorRules,
    )
    expect(errors).toEqual([{ code: 'c'.repeat(255), message: `${'m'.repeat(1_999)}…` }])
  })

  it.each([
    [400, 400],
    [401, 401],
    [403, 403],
    [404, 400],
    [409, 400],
    [422, 400],
  ])('maps the status %i to %i if the reply of V3 has no error entries', (status, expected) => {
    expect(toV2Refusal({ status, form: 'unreadable', entries: [] }, v2ErrorRules)).toEqual({
      status: expected,
      errors: [{ code: 'ADP_UPSTREAM_REFUSED', message: expect.stringContaining(String(status)) as unknown }],
    })
  })
})

describe('toV2Refusal for an error with details', () => {
  const codes = (outer: Partial<UpstreamErrorEntry>, ...details: Partial<UpstreamErrorEntry>[]): string[] => {
    const error = readUpstreamError(400, JSON.stringify({ error: { message: 'm', ...outer, details } }))
    return toV2Refusal(error, v2ErrorRules).errors.map(({ code }) => code)
  }
  it('also reports the outer error if a rule of the error mapping fits the outer error', () => {
    expect(codes({ code: 'ATT_VAL_2' }, { code: 'ATT_VAL_3' })).toEqual(['ATT_VAL_2', 'ATT_VAL_3'])
    expect(codes({ code: 'ATT_VAL_2' }, { code: 'ATT_VAL_2' }, { code: 'ATT_VAL_3' })).toEqual([
      'ATT_VAL_2',
      'ATT_VAL_3',
    ])
    expect(codes({ message: 'The event was not found' }, { code: 'OWN', message: 'x' })).toEqual([
      'ATT_VAL_2',
      'OWN',
    ])
  })

  it('drops the outer error if no rule of the error mapping fits the outer error', () => {
    expect(codes({ code: 'MULTIPLE_ERRORS' }, { code: 'ATT_VAL_2' }, { code: 'ATT_VAL_3' })).toEqual([
      'ATT_VAL_2',
      'ATT_VAL_3',
    ])
  })
})

it.each([
  ['Parsing URL failed at position 15: Expected "eq"', 'Parsing URL failed: Expected "eq"'],
  ['The operand is no text ($filter, character 12)', 'The operand is no text ($filter)'],
  ['Syntax error (character 3)', 'Syntax error'],
  ['Syntax error at line 1, column 55 of the filter', 'Syntax error of the filter'],
  ["Syntax error: character 'x' is not valid at position: 8", "Syntax error: character 'x' is not valid"],
  ['5 rows at most, 90 days', '5 rows at most, 90 days'],
])("withoutPlaces removes positions in the adapter's own query from the message: %s", (message, expected) => {
  expect(withoutPlaces(message)).toBe(expected)
})

describe('toV2Failure', () => {
  const notApplied = (reason: Extract<FailedOutcome, { kind: 'notApplied' }>['reason']): FailedOutcome => ({
    kind: 'notApplied',
    reason,
    retryAfterMs: undefined,
  })
  const rows: [outcome: FailedOutcome, status: number, code: string][] = [
    [notApplied('notConnected'), 503, 'ADP_UPSTREAM_UNAVAILABLE'],
    [notApplied('throttled'), 503, 'ADP_UPSTREAM_UNAVAILABLE'],
    [notApplied('unavailable'), 503, 'ADP_UPSTREAM_UNAVAILABLE'],
    [notApplied('stopped'), 503, 'ADP_UPSTREAM_UNAVAILABLE'],
    [notApplied('redirected'), 502, 'ADP_UPSTREAM_PROTOCOL'],
    [notApplied('budget'), 503, 'ADP_BUDGET_EXCEEDED'],
    [{ kind: 'unknown', reason: 'connectionLost' }, 504, 'ADP_OUTCOME_UNKNOWN'],
    [{ kind: 'unknown', reason: 'timeout' }, 504, 'ADP_OUTCOME_UNKNOWN'],
    [{ kind: 'unknown', reason: 'unreadableReply' }, 504, 'ADP_OUTCOME_UNKNOWN'],
    [{ kind: 'unknown', reason: 'serverError' }, 504, 'ADP_OUTCOME_UNKNOWN'],
    [{ kind: 'unknown', reason: 'otherRecord' }, 504, 'ADP_OUTCOME_UNKNOWN'],
    [{ kind: 'refused', error: { status: 422, form: 'unreadable', entries: [] } }, 400, 'ADP_UPSTREAM_REFUSED'],
  ] // prettier-ignore
  it.each(rows)('maps the outcome %j to %i %s', (outcome, status, code) => {
    const failure = toV2Failure(outcome, v2ErrorRules)
    expect(failure).toEqual({ status, errors: [{ code, message: expect.any(String) as unknown }] })
    const [error] = failure.errors
    if (outcome.kind === 'unknown') expect(error?.message).toMatch(/Send the same batch again/)
    if (outcome.kind === 'notApplied')
      expect(error?.message).toMatch(/not (sent|applied)|before the record was sent/)
  })
})
