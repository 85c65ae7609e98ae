import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { type Batch, type BatchPart, decodeBatch } from '../../src/v2/index.ts'
import { arbitraryBatch } from './support/arbitrary-batch.ts'
import {
  type BatchModel,
  isChangeset,
  partsOf,
  toBytes,
  writeBatch,
  writeEnvelope,
  writePart,
} from './support/batch-model.ts'
import { runs } from '../support/long-run.ts'

const contentTypeOf = ({ boundary, quoted }: BatchModel): string =>
  `multipart/mixed; boundary=${quoted || boundary.includes(' ') ? `"${boundary}"` : boundary}`

/** Returns the batch or the AdapterError. Any other error fails the test. */
function attempt(bytes: Buffer, contentType: string): Batch | AdapterError {
  try {
    return decodeBatch(bytes, contentType)
  } catch (error) {
    if (error instanceof AdapterError) return error
    throw error
  }
}

/** Returns the content of a part without its position in the body. */
function saidBy({ part, changeset, start, end, ...rest }: BatchPart): object {
  expect([part, start, end, changeset ?? 1].every((place) => place > 0)).toBe(true)
  return rest
}

describe('decodeBatch', () => {
  it('decodes every batch that the rules of docs/protocol.md allow (batch-wire F1 to F5, F10, F11, F13 to F17, F19 to F21)', () => {
    fc.assert(
      fc.property(arbitraryBatch, (model) => {
        const bytes = writeBatch(model)
        const batch = decodeBatch(bytes, contentTypeOf(model))
        expect({
          ...batch,
          parts: batch.parts.map(({ start, end, ...part }) => ({
            ...part,
            json: bytes.toString('utf8', start, end).trim(),
          })),
        }).toEqual({
          boundary: model.boundary,
          changesets: model.items.filter(isChangeset).map(({ boundary }) => boundary),
          idsAgree: true,
          parts: partsOf(model).map(({ part, changeset }, index) => ({
            part: index + 1,
            changeset,
            contentId: part.idPlace === 'none' ? undefined : part.contentId,
            contentIdInHttp: part.idPlace === 'http' || part.idPlace === 'both',
            prefersMinimal: part.prefersMinimal,
            metadata: 'minimal',
            record: part.record,
            faults: undefined,
            json: expect.any(String) as string,
          })),
        })
      }),
      { numRuns: runs(150, 2_000) },
    )
  })

  it('decodes a part in the same way whatever parts precede it', () => {
    fc.assert(
      fc.property(arbitraryBatch, (model) => {
        const whole = decodeBatch(writeBatch(model), contentTypeOf(model)).parts.map(saidBy)
        const alone = partsOf(model).flatMap(({ part }) => {
          const body = toBytes(`--b\n${writePart(part)}\n--b--`, model.lineEnds)
          return decodeBatch(body, 'multipart/mixed; boundary=b').parts.map(saidBy)
        })
        expect(whole).toEqual(alone)
      }),
      { numRuns: runs(100, 1_000) },
    )
  })

  it('never decodes a truncated batch, whatever boundary the header names (batch-wire F8, F12)', () => {
    fc.assert(
      fc.property(arbitraryBatch, fc.nat(), fc.nat(), (model, cut, name) => {
        const envelope = toBytes(writeEnvelope(model), model.lineEnds)
        const named = [
          model.boundary,
          ...model.items.filter(isChangeset).map(({ boundary }) => boundary),
          'elsewhere',
        ]
        const boundary = named[name % named.length] ?? ''
        const result = attempt(
          envelope.subarray(0, cut % envelope.length),
          `multipart/mixed; boundary="${boundary}"`,
        )
        expect(result).toBeInstanceOf(AdapterError)
      }),
      { numRuns: runs(700, 10_000) },
    )
  })

  it('decodes the batch if the header names a changeset or a boundary that is not in the body (batch-wire F12)', () => {
    fc.assert(
      fc.property(arbitraryBatch, (model) => {
        fc.pre(model.items.length > 0)
        const bytes = writeBatch(model)
        const expected = decodeBatch(bytes, contentTypeOf(model))
        for (const changeset of model.items.filter(isChangeset))
          expect(decodeBatch(bytes, `multipart/mixed; boundary="${changeset.boundary}"`)).toEqual(expected)
        expect(decodeBatch(bytes, 'multipart/mixed; boundary=elsewhere')).toEqual({
          ...expected,
          idsAgree: false,
        })
      }),
      { numRuns: runs(100, 1_000) },
    )
  })

  it('throws an AdapterError, or returns at most one record for each request line, if bytes are damaged', () => {
    const damage = fc.record({
      at: fc.nat(),
      remove: fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: 200 })),
      insert: fc.oneof(
        fc.uint8Array({ maxLength: 4 }),
        fc
          .constantFrom('--b', '--b--\n', '\n', '\r\n', ' ', ':', '"', '\\', '{', 'Content-ID: 9\n')
          .map((text) => Buffer.from(text)),
      ),
    })
    fc.assert(
      fc.property(arbitraryBatch, fc.array(damage, { minLength: 1, maxLength: 3 }), (model, damages) => {
        let bytes = writeBatch(model)
        for (const { at, remove, insert } of damages) {
          const start = at % (bytes.length + 1)
          bytes = Buffer.concat([bytes.subarray(0, start), insert, bytes.subarray(start + remove)])
        }
        const result = attempt(bytes, contentTypeOf(model))
        if (result instanceof AdapterError) return
        const requestLines = bytes.toString('latin1').match(/^\S+[ \t]+\S+[ \t]+HTTP\/\d\.\d/gm) ?? []
        expect(result.parts.length).toBeLessThanOrEqual(requestLines.length)
        expect(
          result.parts.every(({ record, faults }) => (record === undefined) !== (faults === undefined)),
        ).toBe(true)
      }),
      { numRuns: runs(300, 10_000) },
    )
  })

  it('throws an AdapterError or returns a batch for any bytes', () => {
    const pieces = fc.constantFrom('--b', '--', '\n', '\r\n', 'Content-Type: application/http', 'Content-Type: multipart/mixed; boundary=c', '--c', 'POST AttendanceRecords HTTP/1.1', '{}', ' ', 'x', '\u0000') // prettier-ignore
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), (text) => {
        const result = attempt(Buffer.from(text.join('')), 'multipart/mixed; boundary=b')
        if (!(result instanceof AdapterError)) expect(result.parts.length).toBeLessThanOrEqual(text.length)
      }),
      { numRuns: runs(1_000, 10_000) },
    )
  })
})
