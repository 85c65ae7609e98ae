import { describe, expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { decodeBatch, decodeBatchInSteps, decodeRecord } from '../../src/v2/index.ts'
import { batchOf, costlyRecords, hostileBodies, LINE, MIME } from './support/hostile.ts'

/** The size in bytes. Work that grows with the square of this size would exceed the time limit of a test. */
const SIZE = 8 * 1024 * 1024

function outcome(text: string, boundary: string): number | string {
  try {
    return decodeBatch(Buffer.from(text), `multipart/mixed; boundary="${boundary}"`).parts.length
  } catch (error) {
    if (error instanceof AdapterError) return error.code
    throw error
  }
}

describe('decodeBatch with hostile input', () => {
  it.each(hostileBodies(SIZE))(
    'decodes or rejects %s in linear time',
    (_, expected, text, boundary = 'b') => {
      expect(outcome(text(), boundary)).toBe(expected)
    },
  )

  it.each(costlyRecords)('refuses a record with too many %s (batch-wire F27)', (_, json, message) => {
    expect(decodeRecord(json).faults).toEqual([
      { code: 'ADP_RECORD_LIMIT', message: expect.stringMatching(message) as unknown },
    ])
  })

  it('refuses a record that exceeds the byte limit of a part, and accepts the other records (batch-wire F27)', () => {
    const part = (bytes: number): string => `${MIME}\n${LINE}\n${' '.repeat(bytes - 2)}{}\n`
    const text = part(1_048_577) + part(1_048_576) + part(2)
    const { parts } = decodeBatch(Buffer.from(`${text}--b--`), 'multipart/mixed; boundary=b')
    expect(parts.map(({ faults }) => faults?.[0])).toEqual([
      { code: 'ADP_RECORD_LIMIT', message: expect.stringMatching(/1\.1 MiB.* 1 MiB/) as unknown },
      { code: 'ADP_FIELD', message: expect.stringContaining('Present is required') as unknown },
      { code: 'ADP_FIELD', message: expect.stringContaining('Present is required') as unknown },
    ])
  })

  it('yields to the event loop after each part and changeset, and counts at least 1,024 bytes of work for each', () => {
    const one = `${MIME}\n${LINE}\n{}\n`
    const nested = `--b\nContent-Type: multipart/mixed; boundary=c\n\n${one.replace('--b', '--c')}--c--\n`
    const bytes = Buffer.from(`${one.repeat(1_000)}${nested.repeat(1_000)}--b--`)
    const costs = [...decodeBatchInSteps(bytes, 'multipart/mixed; boundary=b')]
    expect(costs).toEqual(Array(3_000).fill(1_024))
  })

  it('yields to the event loop while it searches for the boundary', () => {
    const bytes = Buffer.from(`${'--a\n'.repeat(75_000)}--b\n${LINE}`)
    const steps = decodeBatchInSteps(bytes, 'multipart/mixed; boundary=b')
    let work = 0
    expect(() => {
      for (const cost of steps) work += cost
    }).toThrow(AdapterError)
    // Two searches read 75,000 lines each, and 2,000 lines cost as much as one mebibyte: 75 MiB in all.
    expect(work).toBeGreaterThanOrEqual(70 * 1_048_576)
  })

  it.each(['x--\n', '\n', '\n-', '\r\n', 'x', '--', '\n--bx', ' '])(
    'yields to the event loop while it searches through lines of the form %j',
    (line) => {
      const fill = line.repeat(SIZE / line.length)
      for (const text of [fill, `${fill}\n${batchOf('{}')}`, `--b\n${fill}\n--b--`]) {
        const costs: number[] = []
        try {
          for (const cost of decodeBatchInSteps(Buffer.from(text), 'multipart/mixed; boundary=b'))
            costs.push(cost)
        } catch (error) {
          // A body that exceeds a limit is not read to its end, so its cost is not checked.
          if (
            error instanceof AdapterError &&
            ['ADP_LIMIT', 'ADP_HEADER', 'ADP_PART_TYPE'].includes(error.code)
          )
            continue
          expect(error).toMatchObject({ code: 'ADP_TRUNCATED' })
        }
        expect(costs.reduce((sum, cost) => sum + cost, 0)).toBeGreaterThanOrEqual(SIZE * 0.9)
      }
    },
  )

  it('accepts the maximum number of records, and rejects a batch with one record more (batch-wire F27)', () => {
    const parts = (count: number): string => `${`${MIME}\n${LINE}\n{}\n`.repeat(count)}--b--`
    expect(outcome(parts(20_000), 'b')).toBe(20_000)
    expect(outcome(parts(20_001), 'b')).toBe('ADP_TOO_LARGE')
  })
})
