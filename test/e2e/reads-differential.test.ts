import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, it, onTestFinished } from 'vitest'

import { sandboxHeaders, startSandbox } from '../sandbox/start-sandbox.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { makeReadQueries, type ReadSamples } from './support/read-queries.ts'
import { makeWideQueries } from './support/wide-queries.ts'

const QUERIES = 320
const WIDE_QUERIES = 60
const PATH = '/V2/Attendance/AttendanceRecords'
/** Small enough that the marks of one session need several pages, and no more: each page is read from V3 again. */
const smallPages = { Prefer: 'odata.maxpagesize=170' }

type Headers = Readonly<Record<string, string>>
/** Answers a GET with its status and body. */
type Get = (path: string, headers: Headers) => Promise<{ status: number; text: string }>

interface Page {
  readonly count: number | undefined
  /** The records as text, so that the order of their members counts too. */
  readonly rows: readonly string[]
}

/** The adapter before a school, and the school's own V2 face. */
async function startSchool(): Promise<{ fromAdapter: Get; fromLegacy: Get; samples: ReadSamples }> {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-reads-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const sandbox = await startSandbox({ scale: 'school', db: join(folder, 'school.db') })
  const adapter = await startAdapter(sandbox.url)
  return {
    fromAdapter: (path, headers) =>
      adapter.request('GET', path, { headers: { ...sandboxHeaders, ...headers } }),
    fromLegacy: (path, headers) => sandbox.request('GET', path, { headers }),
    samples: (await sandbox.json('GET', '/_sandbox/samples')).body as ReadSamples,
  }
}

/** Follows a query to its last page: the pages, or the status of a refusal. */
async function readAll(get: Get, query: string, headers: Headers = {}): Promise<Page[] | number> {
  const pages: Page[] = []
  for (let path: string | undefined = `${PATH}?${query}`; path !== undefined;) {
    const { status, text } = await get(path, headers)
    if (status !== 200) return status
    const body = JSON.parse(text) as { value: unknown[]; '@odata.count'?: number; '@odata.nextLink'?: string }
    pages.push({ count: body['@odata.count'], rows: body.value.map((row) => JSON.stringify(row)) })
    const link: string | undefined = body['@odata.nextLink']
    path = link === undefined ? undefined : new URL(link).pathname + new URL(link).search
  }
  return pages
}

const rowsOf = (pages: Page[] | number): string[] =>
  typeof pages === 'number' ? [`status ${pages}`] : pages.flatMap(({ rows }) => rows)

it(
  `${QUERIES} generated V2 reads give the records, order, pages and counts of the legacy face`,
  { timeout: 240_000 },
  async () => {
    const { fromAdapter, fromLegacy, samples } = await startSchool()
    const differences: unknown[] = []
    const seen = { records: 0, manyPages: 0, refused: 0, empty: 0 }
    const queries = makeReadQueries(QUERIES, samples, 20_260_610)
    for (const [index, query] of queries.entries()) {
      const headers = index % 5 === 0 ? smallPages : {}
      const ours = await readAll(fromAdapter, query, headers)
      const theirs = await readAll(fromLegacy, query, headers)
      if (typeof theirs === 'number') seen.refused += 1
      else if (theirs.length > 1) seen.manyPages += 1
      else if (theirs[0]?.rows.length === 0) seen.empty += 1
      else seen.records += 1
      if (JSON.stringify(ours) !== JSON.stringify(theirs))
        differences.push({ query: decodeURIComponent(query), ours: shorten(ours), theirs: shorten(theirs) })
    }
    expect(differences).toEqual([])
    // The queries are worth something: most find records, and many need several pages.
    expect(seen.records + seen.manyPages).toBeGreaterThan(QUERIES / 3)
    expect(seen.manyPages).toBeGreaterThan(20)
  },
)

it(
  `${WIDE_QUERIES} generated V2 reads of more than 90 days give what the legacy face gives in narrow ones`,
  { timeout: 240_000 },
  async () => {
    const { fromAdapter, fromLegacy, samples } = await startSchool()
    const differences: unknown[] = []
    const seen = { records: 0, manyPages: 0 }
    for (const [index, wide] of makeWideQueries(WIDE_QUERIES, samples, 20_240_902).entries()) {
      const { query, narrow, ordered, skip, top, count } = wide
      const pages = await readAll(fromAdapter, query, index % 3 === 0 ? smallPages : {})
      const all: string[] = []
      for (const part of narrow) all.push(...rowsOf(await readAll(fromLegacy, part)))
      const wanted = all.slice(skip, skip + top)
      const rows = rowsOf(pages)
      if (rows.length > 0) seen.records += 1
      if (typeof pages !== 'number' && pages.length > 1) seen.manyPages += 1
      const ours = {
        rows: ordered ? rows : rows.toSorted(),
        count: typeof pages === 'number' ? pages : pages[0]?.count,
      }
      const theirs = { rows: ordered ? wanted : wanted.toSorted(), count: count ? all.length : undefined }
      if (JSON.stringify(ours) !== JSON.stringify(theirs))
        differences.push({
          query: decodeURIComponent(query),
          ours: [ours.count, rows.length, rows.slice(0, 3)],
          theirs: [theirs.count, wanted.length, wanted.slice(0, 3)],
        })
    }
    expect(differences).toEqual([])
    expect(seen.records).toBeGreaterThan(WIDE_QUERIES / 3)
    expect(seen.manyPages).toBeGreaterThan(4)
  },
)

function shorten(pages: Page[] | number): unknown {
  return typeof pages === 'number'
    ? pages
    : pages.slice(0, 3).map(({ count, rows }) => ({ count, length: rows.length, begin: rows.slice(0, 2) }))
}
