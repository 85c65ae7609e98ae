import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

import { sampleMark, startSandbox } from '../../sandbox/start-sandbox.ts'

export const key = 'HUSHKEY-51c7d0'
export const token = 'HUSHTOKEN-90aa13'
export const clientHeaders = { 'Ocp-Apim-Subscription-Key': key, Authorization: `bearer ${token}` }
export const marks = '/V2/Attendance/AttendanceRecords'

export function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-sweep-'))
  onTestFinished(() => {
    rmSync(folder, { recursive: true })
  })
  return folder
}

export async function startService() {
  const sandbox = await startSandbox({
    ...{ v2Port: 0, keys: [key] },
    tokens: [{ token, domains: ['Attendance', 'Learner.Indentifier', 'Learner.Registration'] }],
  })
  const { url, v2Url, put } = sandbox
  const samples = await sandbox.samples()
  const mark = (index: number) => ({
    ...sampleMark(samples, index, { Comment: `  HUSHCOMMENT ${index} – ä "q" ` }),
    ...{ AttendableEvent: samples.events[index], SchoolAttendanceCode: samples.codes[index]?.id },
  })
  return { url, v2Url, samples, put, mark }
}
