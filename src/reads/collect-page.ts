import { AdapterError } from '../errors.ts'
import { type ReadPlan, readNextLink, type ReadRow } from '../translate/index.ts'
import type { FlatReply } from '../v2/index.ts'

/** The start of a page in V3's reply: V3's own page and its rows before the start, so that any instance can continue there. */
export interface ReadPosition {
  /** Index of the plan's query. */
  readonly window: number
  /** The query of V3's next link, as V3 gave it; undefined: the first page of the window. */
  readonly link: string | undefined
  /** Rows of that page that were given already, as `writeGivenRows` has them; empty: none. */
  readonly given: string
}

/** One page of recorded marks. */
interface CollectedPage {
  readonly rows: readonly FlatReply[]
  /** Where the next page begins; undefined: nothing is left. */
  readonly next: ReadPosition | undefined
  /** Recorded marks that were seen; all of them when the plan counts. */
  readonly count: number
}

/** The parts that `collectPage` works with. */
export interface PageSource {
  /** The JSON of V3's answer to a raw query. */
  readonly fetch: (query: string) => Promise<unknown>
  readonly readRow: (row: unknown) => ReadRow
  readonly plan: ReadPlan
}

/** The page that is wanted. */
export interface PageWish {
  readonly from: ReadPosition
  /** Recorded marks to pass over. */
  readonly skip: number
  /** Recorded marks of the page at most. */
  readonly size: number
  /** True where `$top` ends with this page: no row beyond it is read. */
  readonly last: boolean
  /** Whether all recorded marks are counted, to the end. */
  readonly count: boolean
}

/**
 * Reads V3 page by page until the page is full, one of V3's pages in memory at a time. It reads one row more, so that a
 * next link always leads to something; where V3 leaves unmarked rows out itself, its own link is that promise, except that of a first page:
 * some services give one behind any full page, and nothing may follow it.
 * Error: `ADP_UPSTREAM_PROTOCOL` for a reply that is not a collection of records.
 */
export async function collectPage(
  { fetch, readRow, plan }: PageSource,
  wish: PageWish,
): Promise<CollectedPage> {
  const { size, last } = wish
  const rows: FlatReply[] = []
  let { window, link, given } = wish.from
  let next: ReadPosition | undefined
  let count = 0
  for (;;) {
    const isFirst = link === undefined
    const page = readCollection(await fetch(link ?? plan.queries[window] ?? ''))
    const isGiven = readGivenRows(given)
    const before: FlatReply[] = []
    const left: FlatReply[] = []
    for (const each of page.rows) {
      const row = readRow(each)
      if (row === 'unreadable') throw brokenAnswer('holds a row that is not an attendance record')
      if (row === 'unmarked') continue
      const isOver = isGiven(row)
      if (!isOver) count += 1
      if (isOver || count <= wish.skip) before.push(row)
      else if (rows.length < size) {
        rows.push(row)
        before.push(row)
      } else left.push(row)
    }
    if (left.length > 0 && !last) next ??= { window, link, given: writeGivenRows(before, left) }
    if (next !== undefined && !wish.count) return { rows, next, count }
    const full = rows.length === size
    if (full && last && !wish.count) return { rows, next, count }
    if (page.link !== undefined && page.link === link) throw brokenAnswer('has a next link to itself')
    given = ''
    link = page.link
    if (link === undefined) window += 1
    if (window >= plan.queries.length) return { rows, next, count }
    if (full && size > 0 && link !== undefined && !isFirst && plan.narrowed && !wish.count)
      return { rows, next: { window, link, given }, count }
  }
}

/** A page of a V3 collection. */
interface Collection {
  readonly rows: readonly unknown[]
  /** The query of the next page. */
  readonly link: string | undefined
}

/** Reads a V3 page. Error: `ADP_UPSTREAM_PROTOCOL`, also for a page that has a link to more rows in a form that is not known. */
export function readCollection(json: unknown): Collection {
  const page = typeof json === 'object' && json !== null ? (json as Readonly<Record<string, unknown>>) : {}
  const rows = page['value']
  if (!Array.isArray(rows)) throw brokenAnswer('is not a collection')
  const next = readNextLink(page)
  if (next.kind === 'broken') throw brokenAnswer(next.fault)
  return { rows, link: next.kind === 'next' ? next.query : undefined }
}

function brokenAnswer(fault: string): AdapterError {
  return new AdapterError('ADP_UPSTREAM_PROTOCOL', `The service's answer ${fault}.`)
}

/** A row is kept as four bytes, so that a link stays short enough for gateways: 4 KB for all rows of one of V3's pages. */
const BYTES = 4
/** Some two rows of a page have the same four bytes in one page of several thousand; then another salt is taken. */
const MAX_SALT = 15

/**
 * Writes which rows of one of V3's pages a client has been given, in a form for its next link. Not how many: V3 promises no
 * order, so the same page may come in another one when it is read again. None of the rows `left` is taken for a given one.
 */
export function writeGivenRows(given: readonly FlatReply[], left: readonly FlatReply[]): string {
  const keys = new Set(given.map(keyOf))
  if (keys.size === 0) return ''
  const others = left.map(keyOf).filter((key) => !keys.has(key))
  for (let salt = 0; ; salt += 1) {
    const prints = new Set(Array.from(keys, (key) => printOf(key, salt)))
    if (salt < MAX_SALT && others.some((key) => prints.has(printOf(key, salt)))) continue
    const bytes = Buffer.alloc(1 + prints.size * BYTES)
    let at = bytes.writeUInt8(salt)
    for (const print of prints) at = bytes.writeUInt32BE(print, at)
    return bytes.toString('base64url')
  }
}

/** The test of a row by what `writeGivenRows` wrote. */
export function readGivenRows(text: string): (row: FlatReply) => boolean {
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.length === 0) return () => false
  const salt = bytes.readUInt8()
  const prints = new Set<number>()
  for (let at = 1; at + BYTES <= bytes.length; at += BYTES) prints.add(bytes.readUInt32BE(at))
  return (row) => prints.has(printOf(keyOf(row), salt))
}

function keyOf({ ExternalID, Learner, AttendableEvent }: FlatReply): string {
  return `${ExternalID} ${Learner} ${AttendableEvent}`.toLowerCase()
}

/** FNV-1a, and the last step of MurmurHash3, so that keys that differ in one digit spread. */
function printOf(key: string, salt: number): number {
  let hash = 0x811c9dc5 ^ Math.imul(salt, 0x9e3779b1)
  for (let at = 0; at < key.length; at += 1) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
