import { expect, it } from 'vitest'

import { fingerprintOf, type OfferedExchange } from '../../../src/compare/live/exchange.ts'

const write = (unit: string, body: string | undefined): OfferedExchange =>
  ({
    kind: 'batch',
    served: 'v2',
    unit,
    keys: [],
    request: { body: body === undefined ? undefined : Buffer.from(body) },
  }) as unknown as OfferedExchange
const served = (code: string, recordedOn: string): OfferedExchange =>
  ({
    kind: 'batch',
    served: 'v3',
    unit: 'school',
    records: [
      {
        key: 'learner event',
        record: { AttendanceCode: { ExternalID: code }, Qualifier: {}, Present: true, Absent: false, RecordedOn: recordedOn },
      },
    ],
  }) as unknown as OfferedExchange // prettier-ignore

it('fingerprintOf returns equal fingerprints only for the same bytes from the same school', () => {
  const one = fingerprintOf(write('school', 'batch'))
  expect(fingerprintOf(write('school', 'batch'))).toBe(one)
  expect(fingerprintOf(write('other', 'batch'))).not.toBe(one)
  expect(fingerprintOf(write('school', 'other'))).not.toBe(one)
  const long = 'x'.repeat(1_048_576)
  expect(fingerprintOf(write('school', long))).not.toBe(fingerprintOf(write('school', `${long}x`)))
})

it('fingerprintOf ignores the time of a record', () => {
  const one = fingerprintOf(served('code', '2026-09-07T08:00:00Z'))
  expect(fingerprintOf(served('code', '2026-09-07T08:05:00Z'))).toBe(one)
  expect(fingerprintOf(served('other', '2026-09-07T08:00:00Z'))).not.toBe(one)
})

it('fingerprintOf returns undefined for a read, and for a write whose body was not stored', () => {
  expect(fingerprintOf(write('school', undefined))).toBeUndefined()
  expect(fingerprintOf({ kind: 'readKey', unit: 'school' } as OfferedExchange)).toBeUndefined()
})
