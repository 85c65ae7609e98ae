import { Pool } from 'undici'

import type { RecordMapping } from '../src/translate/index.ts'

/** How a partner's records are translated by default. */
export const mapping: RecordMapping = {
  attendeeType: 'Learner.Identifier',
  eventType: 'Attendance.AttendanceSession',
  codeType: 'Attendance.Lookup',
  changeProcessName: 'Markbridge',
  unmappedFields: 'report',
}

const headers = {
  'content-type': 'application/json',
  accept: 'application/json',
  prefer: 'return=representation',
  authorization: 'bearer bench',
  'ocp-apim-subscription-key': 'bench',
}

/** Posts records through undici's `Pool.request`; resolves with the text of the reply, read whole. */
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

/** Runs `act` for 0 to `count` - 1, so many at a time. */
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
