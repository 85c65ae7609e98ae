import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, it, onTestFinished } from 'vitest'

import { sandboxHeaders, startSandbox } from '../sandbox/start-sandbox.ts'
import { startAdapter } from '../support/start-adapter.ts'
import { makeReadQueries, type ReadSamples } from './support/read-queries.ts'

const QUERIES = 320
const PATH = '/V2/Attendance/AttendanceRecords'

/** Answers a GET with its status and body. */
type Get = (path: string, headers: Record<string, string>) => Promise<{ status: number; text: string }>

interface Page {
  readonly count: number | undefined
  /** The records as text, so that the order of their members counts too. */
  readonly rows: string
}

/** Follows a query to its last page: the pages, or the status of a refusal. */
async function readAll(get: Get, query: string, headers: Record<string, string>): Promise<Page[] | number> {
  const pages: Page[] = []
  for (let path: string | undefined = `${PATH}?${query}`; path !== undefined;) {
    const { status, text } = await get(path, headers)
    if (status !== 200) return status
    const body = JSON.parse(text) as { value: unknown[]; '@odata.count'?: number; '@odata.nextLink'?: string }
    pages.push({ count: body['@odata.count'], rows: JSON.stringify(body.value) })
    const link: string | undefined = body['@odata.nextLink']
    path = link === undefined ? undefined : new URL(link).pathname + new URL(link).search
  }
  return pages
}

it(
  `${QUERIES} generated V2 reads give the records, order, pages and counts of the legacy face`,
  { timeout: 240_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'markbridge-reads-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const sandbox = await startSandbox({ scale: 'school', db: join(folder, 'school.db') })
    const adapter = await startAdapter(sandbox.url)
    const samples = (await sandbox.json('GET', '/_sandbox/samples')).body as ReadSamples
    const fromAdapter: Get = (path, headers) =>
      adapter.request('GET', path, { headers: { ...sandboxHeaders, ...headers } })
    const fromLegacy: Get = (path, headers) => sandbox.request('GET', path, { headers })

    const differences: unknown[] = []
    const seen = { records: 0, manyPages: 0, refused: 0, empty: 0 }
    const queries = makeReadQueries(QUERIES, samples, 20_260_610)
    for (const [index, query] of queries.entries()) {
      const headers: Record<string, string> = index % 5 === 0 ? { Prefer: 'odata.maxpagesize=40' } : {}
      const [ours, theirs] = [
        await readAll(fromAdapter, query, headers),
        await readAll(fromLegacy, query, headers),
      ]
      if (typeof theirs === 'number') seen.refused += 1
      else if (theirs.length > 1) seen.manyPages += 1
      else if (theirs[0]?.rows === '[]') seen.empty += 1
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

function shorten(pages: Page[] | number): unknown {
  return typeof pages === 'number'
    ? pages
    : pages.slice(0, 3).map(({ count, rows }) => ({ count, length: rows.length, begin: rows.slice(0, 300) }))
}
