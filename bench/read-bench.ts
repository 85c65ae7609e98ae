import { Pool } from 'undici'

import { startChild } from './child.ts'
import { type Product, startProduct } from './product.ts'
import type { Row } from './report.ts'
import { interleave, median, medianRatio } from './rounds.ts'

const ROUNDS = 3
const MIB = 1_048_576
const AIM_RATIO = 0.8
const AIM_MIB = 190
const RANGE = 'AttendableEventStart ge 2026-01-05T00:00:00Z and AttendableEventStart lt 2026-04-05T00:00:00Z'
const headers = { authorization: 'Bearer sandbox', 'ocp-apim-subscription-key': 'sandbox' }

/** The three ways to read the recorded marks of 90 days. The rows of V3 include sessions without a mark unless the filter excludes them. */
const readers = {
  adapter: ['/V2/Attendance/AttendanceRecords', RANGE],
  'V3 pages': ['/Attendance/V3/AttendanceRecords', RANGE],
  'V3 pages, recorded only': [
    '/Attendance/V3/AttendanceRecords',
    `${RANGE} and RecordedBy/ExternalID ne null`,
  ],
} as const
type Reader = keyof typeof readers
const names = ['adapter', 'V3 pages', 'V3 pages, recorded only'] as const satisfies readonly Reader[]

/** Measures how many recorded marks of 720 learners each reader reads in a second. Throws if the readers find different numbers. */
export async function benchReads(): Promise<Row[]> {
  const upstream = await startChild('read-process.ts', [], 1)
  const v3Url = `http://127.0.0.1:${upstream.ready['port'] ?? 0}`
  const adapter = await startProduct(['--v3', v3Url, '--journal', 'none'], 0)
  try {
    const counts = new Set<number>()
    const rates = await interleave(names, ROUNDS, async (name) => {
      const startedMs = performance.now()
      const [path, filter] = readers[name]
      const marks = await readAll(name === 'adapter' ? adapter.url : v3Url, path, filter)
      counts.add(marks)
      return (marks / (performance.now() - startedMs)) * 1000
    })
    if (counts.size !== 1 || counts.has(0)) throw new Error(`marks found: ${[...counts].join(', ')}`)
    return [...rateRows(rates), memoryRow(adapter)]
  } finally {
    await Promise.all([adapter.stop(), upstream.stop()])
  }
}

async function readAll(url: string, path: string, filter: string): Promise<number> {
  const pool = new Pool(url, { connections: 1 })
  let marks = 0
  for (let next: string | undefined = `${path}?$filter=${encodeURIComponent(filter)}`; next !== undefined;) {
    const reply = await pool.request({ method: 'GET', path: next, headers })
    const text = await reply.body.text()
    if (reply.statusCode !== 200) throw new Error(`${reply.statusCode} ${text.slice(0, 200)}`)
    const page = JSON.parse(text) as { value: { RecordedBy: unknown }[]; '@odata.nextLink'?: string }
    marks += page.value.filter((row) => row.RecordedBy !== null).length
    const link: string | undefined = page['@odata.nextLink']
    next = link === undefined ? undefined : new URL(link).pathname + new URL(link).search
  }
  await pool.close()
  return marks
}

function rateRows(rates: ReadonlyMap<Reader, readonly number[]>): Row[] {
  const own = rates.get('adapter') ?? []
  return names.map((name) => {
    const values = rates.get(name) ?? []
    const ratio = medianRatio(own, values)
    const aimed = name === 'V3 pages'
    return {
      bench: 'read 90 days of 720 learners',
      candidate: name,
      value: `${median(values).toFixed(0)} marks/s`,
      ratio: name === 'adapter' ? '' : `adapter ${ratio.toFixed(2)} of it`,
      aim: aimed ? `>= ${AIM_RATIO}` : '',
      met: aimed ? ratio >= AIM_RATIO : undefined,
    }
  })
}

function memoryRow(adapter: Product): Row {
  const peakBytes = adapter.peakRss()
  return {
    bench: 'read 90 days of 720 learners: memory',
    candidate: 'adapter',
    value: `peak ${(peakBytes / MIB).toFixed(0)} MiB in all`,
    ratio: '',
    aim: `< ${AIM_MIB} MiB`,
    met: peakBytes < AIM_MIB * MIB,
  }
}
