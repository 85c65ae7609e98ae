import { Pool } from 'undici'

import { serveCommands } from './child.ts'

// Reads the marks of V2 and of V3 at the same time, 90 days at a time, with undici and JSON.parse, and counts them.
// Arguments: the ports of V2 and V3, the first day, and the last day.

const [v2Port = '', v3Port = '', from = '', to = ''] = process.argv.slice(2)
const DAY_MS = 86_400_000
const headers = { authorization: 'Bearer sandbox', 'ocp-apim-subscription-key': 'sandbox' }

async function readAll(port: string, path: string, condition: string): Promise<number> {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 1 })
  const endMs = Date.parse(to) + DAY_MS
  let marks = 0
  for (let fromMs = Date.parse(from); fromMs < endMs; fromMs += 90 * DAY_MS) {
    const range = [fromMs, Math.min(fromMs + 90 * DAY_MS, endMs)].map((ms) => new Date(ms).toISOString())
    const filter = `AttendableEventStart ge ${range[0] ?? ''} and AttendableEventStart lt ${range[1] ?? ''}${condition}`
    for (
      let next: string | undefined = `${path}?$filter=${encodeURIComponent(filter)}`;
      next !== undefined;
    ) {
      const reply = await pool.request({ method: 'GET', path: next, headers })
      const text = await reply.body.text()
      if (reply.statusCode !== 200) throw new Error(`${reply.statusCode} ${text.slice(0, 200)}`)
      const page = JSON.parse(text) as { value: unknown[]; '@odata.nextLink'?: string }
      marks += page.value.length
      const link: string | undefined = page['@odata.nextLink']
      next = link === undefined ? undefined : new URL(link).pathname + new URL(link).search
    }
  }
  await pool.close()
  return marks
}

serveCommands(
  {},
  {
    read: async () => {
      const startedMs = performance.now()
      const [v2, v3] = await Promise.all([
        readAll(v2Port, '/V2/Attendance/AttendanceRecords', ''),
        readAll(v3Port, '/Attendance/V3/AttendanceRecords', ' and RecordedBy/ExternalID ne null'),
      ])
      return { v2, v3, ms: performance.now() - startedMs }
    },
  },
)
