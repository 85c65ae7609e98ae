import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { Pool } from 'undici'

import { type Child, startChild } from './child.ts'
import type { Row } from './report.ts'
import { interleave, median, medianRatio } from './rounds.ts'

const ROUNDS = 15
const MIB = 1_048_576
const AIM_START_MS = 2_000
const AIM_MIB = 300
/** 90 days, in which all 30 learners of the class are on roll. Each learner has two rows a day. */
const [FROM, TO] = ['2025-12-01T00:00:00Z', '2026-03-01T00:00:00Z']
const ROWS = 5_400
const PAGES = 6
const headers = { authorization: 'Bearer sandbox', 'ocp-apim-subscription-key': 'sandbox' }

const firstPages = {
  'identifiers, on roll': "/V3/LearnerIdentifiers?$filter=OnRollState%20eq%20'Current'",
  'registrations, two levels': '/V3/LearnerRegistrations?$expand=Enrolments($expand=EnrolmentStatuses)',
  'contact details, four lists':
    '/V1/LearnerContactDetails?$expand=Addresses,Telephones,Emails,LearnerContactRelationships',
} as const

/** Measures how fast the sandbox starts, how fast it answers reads at the scale of a school, and how much memory it takes. */
export async function benchSandbox(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-bench-'))
  try {
    const db = join(folder, 'school.db')
    const rows = [
      await timeStart('start with a class', ['class', ':memory:'], AIM_START_MS),
      await timeStart('build a school', ['school', db]),
      await timeStart('start with a school that is built', ['school', db]),
    ]
    const sandbox = await startChild('sandbox-process.ts', ['school', db], 0)
    const peer = await startChild('sandbox-peer-process.ts', [db, Date.parse(FROM), Date.parse(TO)], 0)
    const pool = new Pool(`http://127.0.0.1:${sandbox.ready['port'] ?? 0}`, { connections: 1 })
    try {
      rows.push(...(await readClass(pool, peer)), ...(await readFirstPages(pool)), await memoryRow(sandbox))
    } finally {
      await pool.close()
      await Promise.all([sandbox.stop(), peer.stop()])
    }
    return rows
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Measures the time from the start of the process, including Node.js, to the moment at which it accepts requests. */
async function timeStart(bench: string, args: readonly string[], aimMs?: number): Promise<Row> {
  const startedMs = performance.now()
  const child = await startChild('sandbox-process.ts', args, 0)
  const ms = performance.now() - startedMs
  await child.stop()
  return {
    ...{ bench: `sandbox: ${bench}`, candidate: 'sandbox', value: `${ms.toFixed(0)} ms`, ratio: '' },
    aim: aimMs === undefined ? '' : `< ${aimMs} ms`,
    met: aimMs === undefined ? undefined : ms < aimMs,
  }
}

const readers = ['sandbox', 'without OData and HTTP', 'SQL and JSON.stringify'] as const
type Reader = (typeof readers)[number]

async function readClass(pool: Pool, peer: Child): Promise<Row[]> {
  const first = await classAddress(pool)
  const marks = (await peer.ask('sql'))['rows'] ?? Number.NaN
  const times = await interleave(readers, ROUNDS, async (name) => {
    if (name === 'sandbox') return readPages(pool, first)
    const { rows, ms = Number.NaN } = await peer.ask(name === 'without OData and HTTP' ? 'augmented' : 'sql')
    const expected = name === 'without OData and HTTP' ? ROWS : marks
    if (rows !== expected) throw new Error(`${name}: ${rows ?? 0} rows of ${expected}`)
    return ms
  })
  const own = times.get('sandbox') ?? []
  const counts: Readonly<Record<Reader, number>> = {
    sandbox: ROWS,
    'without OData and HTTP': ROWS,
    'SQL and JSON.stringify': marks,
  }
  return readers.map((name) => {
    const values = times.get(name) ?? []
    const rate = (counts[name] / median(values)).toFixed(0)
    return {
      bench: 'sandbox: a class over 90 days',
      candidate: name,
      value: `${median(values).toFixed(0)} ms, ${counts[name]} rows, ${rate}k rows/s`,
      ratio: name === 'sandbox' ? `${PAGES} pages` : `sandbox takes ${medianRatio(own, values).toFixed(1)}x`,
      aim: '',
      met: undefined,
    }
  })
}

/** Returns the address of the first page of marks of one class, which consists of the first 30 learners. */
async function classAddress(pool: Pool): Promise<string> {
  const { text } = await get(pool, '/_sandbox/samples')
  const { learners } = JSON.parse(text) as { learners: string[] }
  const ids = learners.slice(0, 30).join(',')
  const filter = `Attendee/ExternalID in (${ids}) and AttendableEventStart ge ${FROM} and AttendableEventStart lt ${TO}`
  return `/Attendance/V3/AttendanceRecords?$filter=${encodeURIComponent(filter)}`
}

/** Reads all pages in turn, and returns the sum of the times from each request to the last byte of its page, in ms. */
async function readPages(pool: Pool, first: string): Promise<number> {
  let [ms, rows, pages] = [0, 0, 0]
  for (let next: string | undefined = first; next !== undefined; pages += 1) {
    const reply = await get(pool, next)
    ms += reply.ms
    // The client parses the page outside of the measured time.
    const page = JSON.parse(reply.text) as { value: unknown[]; '@odata.nextLink'?: string }
    rows += page.value.length
    const link: string | undefined = page['@odata.nextLink']
    next = link === undefined ? undefined : link.slice(link.indexOf('/', 'http://'.length))
  }
  if (rows !== ROWS || pages !== PAGES) throw new Error(`${rows} of ${ROWS} rows on ${pages} pages`)
  return ms
}

async function readFirstPages(pool: Pool): Promise<Row[]> {
  const rows: Row[] = []
  for (const [name, path] of Object.entries(firstPages)) {
    const cold = await get(pool, path)
    const warm: number[] = []
    for (let round = 0; round < ROUNDS; round += 1) warm.push((await get(pool, path)).ms)
    const count = (JSON.parse(cold.text) as { value: unknown[] }).value.length
    if (count < 720) throw new Error(`${name}: ${count} learners`)
    rows.push({
      ...{ bench: `sandbox: ${name}`, candidate: 'sandbox', aim: '', met: undefined },
      value: `${median(warm).toFixed(0)} ms, first time ${cold.ms.toFixed(0)} ms`,
      ratio: `${count} learners, ${(cold.text.length / 1024).toFixed(0)} KiB`,
    })
  }
  return rows
}

async function get(pool: Pool, path: string): Promise<{ text: string; ms: number }> {
  const startedMs = performance.now()
  const reply = await pool.request({ method: 'GET', path, headers })
  const text = await reply.body.text()
  if (reply.statusCode !== 200) throw new Error(`${reply.statusCode} ${text.slice(0, 200)}`)
  return { text, ms: performance.now() - startedMs }
}

async function memoryRow(sandbox: Child): Promise<Row> {
  const { peakBytes = Number.NaN } = await sandbox.ask('memory')
  return {
    ...{ bench: 'sandbox: memory after all this', candidate: 'sandbox', ratio: '', aim: `< ${AIM_MIB} MiB` },
    value: `peak ${(peakBytes / MIB).toFixed(0)} MiB`,
    met: peakBytes < AIM_MIB * MIB,
  }
}
