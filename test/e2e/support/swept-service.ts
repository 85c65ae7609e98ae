import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

import { createSandbox } from '../../../src/sandbox/index.ts'

/** The key of the only client. */
export const key = 'HUSHKEY-51c7d0'
/** Its token. */
export const token = 'HUSHTOKEN-90aa13'
export const clientHeaders = { 'Ocp-Apim-Subscription-Key': key, Authorization: `bearer ${token}` }
export const marks = '/V2/Attendance/AttendanceRecords'

/** A folder that goes with the test. */
export function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-sweep-'))
  onTestFinished(() => {
    rmSync(folder, { recursive: true })
  })
  return folder
}

/** A service that knows these credentials only. */
export async function startService() {
  const sandbox = createSandbox({
    ...{ now: '2026-06-10T10:00:00Z', v2Port: 0, keys: [key] },
    tokens: [{ token, domains: ['Attendance', 'Learner.Indentifier', 'Learner.Registration'] }],
  })
  const { url, v2Url } = await sandbox.listen()
  onTestFinished(() => sandbox.close())
  const samples = (await (await fetch(`${url}/_sandbox/samples`)).json()) as {
    learners: string[]
    events: string[]
    codes: { id: string }[]
  }
  const put = async (path: string, body: object): Promise<unknown> => {
    const headers = { 'Content-Type': 'application/json' }
    return (await fetch(url + path, { method: 'PUT', headers, body: JSON.stringify(body) })).json()
  }
  /** A mark of this learner, in a session and with a code of its own. */
  const mark = (index: number) => ({
    ...{
      Learner: samples.learners[index],
      AttendableEvent: samples.events[index],
      SchoolAttendanceCode: samples.codes[index]?.id,
    },
    ...{ Present: true, Absent: false, MinutesLate: null, Comment: `  HUSHCOMMENT ${index} – ä "q" ` },
  })
  return { url, v2Url, samples, put, mark }
}
