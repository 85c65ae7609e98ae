import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

import { sampleMark, startSandbox } from '../../sandbox/start-sandbox.ts'

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
  const sandbox = await startSandbox({
    ...{ v2Port: 0, keys: [key] },
    tokens: [{ token, domains: ['Attendance', 'Learner.Indentifier', 'Learner.Registration'] }],
  })
  const { url, v2Url, put } = sandbox
  const samples = await sandbox.samples()
  /** A mark of this learner, in a session and with a code of its own. */
  const mark = (index: number) => ({
    ...sampleMark(samples, index, { Comment: `  HUSHCOMMENT ${index} – ä "q" ` }),
    ...{ AttendableEvent: samples.events[index], SchoolAttendanceCode: samples.codes[index]?.id },
  })
  return { url, v2Url, samples, put, mark }
}
