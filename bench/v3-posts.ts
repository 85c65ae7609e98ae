import { Pool } from 'undici'

import { type RecordMapping, toV3Record } from '../src/translate/index.ts'
import { decodeBatch } from '../src/v2/index.ts'
import { encodeRecord } from '../src/v3/index.ts'
import { legacyBatch } from './legacy-batch.ts'

/** The default settings with which the adapter translates a partner's records. */
export const mapping: RecordMapping = {
  eventType: 'Attendance.AttendanceSession',
  codeType: 'Attendance.Lookup',
  changeProcessName: 'Markbridge',
  unmappedFields: 'report',
}

/** Creates the V3 bodies of 30 records. */
export function makeBodies(): readonly string[] {
  const { bytes, contentType } = legacyBatch(30, 0)
  return decodeBatch(bytes, contentType).parts.flatMap(({ record }) => {
    const v3 = record && toV3Record(record, mapping, '2024-09-05T08:00:00.000Z').record
    return v3 === undefined ? [] : [encodeRecord(v3, 'full')]
  })
}

const headers = {
  'content-type': 'application/json',
  accept: 'application/json',
  prefer: 'return=representation',
  authorization: 'bearer bench',
  'ocp-apim-subscription-key': 'bench',
}

/** Returns a function that posts a body with undici's `Pool.request` and returns the text of the whole reply. */
export function createPosts(port: number): (body: string) => Promise<string> {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 32, pipelining: 1 })
  return async (content) => {
    const path = '/Attendance/V3/AttendanceRecords'
    const { statusCode, body } = await pool.request({ method: 'POST', path, headers, body: content })
    const text = await body.text()
    if (statusCode !== 201) throw new Error(`the upstream answered ${statusCode}`)
    return text
  }
}

/** Runs `act` for each number from 0 to `count` - 1, with at most `concurrency` calls in progress. */
export async function atATime(
  concurrency: number,
  count: number,
  act: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) {
      next += 1
      await act(next - 1)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
}
