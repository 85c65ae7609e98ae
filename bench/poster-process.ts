import { setFlagsFromString } from 'node:v8'

import { Pool } from 'undici'

import { toV3Record } from '../src/translate/index.ts'
import { decodeBatch } from '../src/v2/index.ts'
import { encodeRecord } from '../src/v3/index.ts'
import { cpuMs, serveCommands } from './child.ts'
import { legacyBatch } from './legacy-batch.ts'
import { median } from './rounds.ts'

// The peer of the adapter: the same V3 bodies, made beforehand, straight through undici's `Pool.request`, each reply read
// whole. Arguments: port, requests at a time, ms, and `tuned` for the V8 that the adapter runs on (src/cli/main.ts).

if (process.argv[5] === 'tuned') setFlagsFromString('--no-allocation-site-pretenuring')
const [port, concurrency, durationMs] = process.argv.slice(2).map(Number)
const pool = new Pool(`http://127.0.0.1:${port ?? 0}`, { connections: 32, pipelining: 1 })
const headers = {
  'content-type': 'application/json',
  accept: 'application/json',
  prefer: 'return=representation',
  authorization: 'bearer bench',
  'ocp-apim-subscription-key': 'bench',
}
const mapping = {
  attendeeType: 'Learner.Identifier',
  eventType: 'Attendance.AttendanceSession',
  codeType: 'Attendance.Lookup',
  changeProcessName: 'Markbridge',
  unmappedFields: 'report',
} as const
const batch = legacyBatch(30, 0)
const bodies = decodeBatch(batch.bytes, batch.contentType).parts.flatMap(({ record }) => {
  const v3 = record === undefined ? undefined : toV3Record(record, mapping, '2024-09-05T08:00:00.000Z').record
  return v3 === undefined ? [] : [encodeRecord(v3, 'full')]
})

let sent = 0

async function post(): Promise<void> {
  const content = bodies[sent % bodies.length] ?? ''
  sent += 1
  const path = '/Attendance/V3/AttendanceRecords'
  const { statusCode, body } = await pool.request({ method: 'POST', path, headers, body: content })
  await body.text()
  if (statusCode !== 201) throw new Error(`the upstream answered ${statusCode}`)
}

serveCommands(
  {},
  {
    run: async () => {
      const before = sent
      const start = performance.now()
      const worker = async (): Promise<void> => {
        while (performance.now() - start < (durationMs ?? 1000)) await post()
      }
      await Promise.all(Array.from({ length: concurrency ?? 32 }, worker))
      return { marks: sent - before, ms: performance.now() - start }
    },
    // The posts of one batch after another, each batch whole before the next.
    batches: async () => {
      const before = sent
      const batchMs: number[] = []
      const start = performance.now()
      while (performance.now() - start < (durationMs ?? 1000)) {
        const begun = performance.now()
        let left = bodies.length
        const worker = async (): Promise<void> => {
          while (left > 0) {
            left -= 1
            await post()
          }
        }
        await Promise.all(Array.from({ length: concurrency ?? 16 }, worker))
        batchMs.push(performance.now() - begun)
      }
      return { marks: sent - before, ms: performance.now() - start, batchMs: median(batchMs) }
    },
    cpu: () => ({ cpuMs: cpuMs() }),
  },
)
