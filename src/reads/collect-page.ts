import { AdapterError } from '../errors.ts'
import { type ReadPlan, readNextLink, type ReadRow } from '../translate/index.ts'
import type { FlatReply } from '../v2/index.ts'

/** The start of a page: one of V3's pages and its rows before the start, so that any instance can continue there. */
export interface ReadPosition {
  /** Index into the queries of the plan. */
  readonly window: number
  /** The query of V3's next link as V3 sent it, or `undefined` for the first page of the window. */
  readonly link: string | undefined
  /** The rows of that page that the client already has, as `writeGivenRows` writes them, or an empty string if there are none. */
  readonly given: string
}

interface CollectedPage {
  readonly rows: readonly FlatReply[]
  /** Start of the next page, or `undefined` if nothing is left. */
  readonly next: ReadPosition | undefined
  /** Number of recorded marks that were read: all of them if the plan counts. */
  readonly count: number
}

export interface PageSource {
  /** Returns the JSON of V3's answer to a raw query. */
  readonly fetch: (query: string) => Promise<unknown>
  readonly readRow: (row: unknown) => ReadRow
  readonly plan: ReadPlan
}

export interface PageRequest {
  readonly from: ReadPosition
  readonly skip: number
  readonly size: number
  /** True if `$top` ends with this page, so that no row beyond it is read. */
  readonly last: boolean
  /** True if all recorded marks are counted, to the end. */
  readonly count: boolean
}

/**
 * Reads V3 page by page until the page is full, with one of V3's pages in memory at a time. Reads one row more, so that a next link always
 * leads to a row. If V3 itself leaves out unmarked rows, its own next link guarantees that instead, except after a first page: some
 * services give a link after any full page, even the last. Throws `ADP_UPSTREAM_PROTOCOL` for a reply that is not a collection of records.
 */
export async function collectPage(
  { fetch, readRow, plan }: PageSource,
  wish: PageRequest,
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
      if (row === 'unreadable') throw brokenAnswer('contains a row that is not an attendance record')
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
    if (page.link !== undefined && page.link === link)
      throw brokenAnswer('has a next link that leads to the same page')
    given = ''
    link = page.link
    if (link === undefined) window += 1
    if (window >= plan.queries.length) return { rows, next, count }
    if (full && size > 0 && link !== undefined && !isFirst && plan.narrowed && !wish.count)
      return { rows, next: { window, link, given }, count }
  }
}

interface Collection {
  readonly rows: readonly unknown[]
  readonly link: string | undefined
}

/** Throws `ADP_UPSTREAM_PROTOCOL`, also for a page whose link to more rows has an unknown form. */
export function readCollection(json: unknown): Collection {
  const page = typeof json === 'object' && json !== null ? (json as Readonly<Record<string, unknown>>) : {}
  const rows = page['value']
  if (!Array.isArray(rows)) throw brokenAnswer('is not a collection')
  const next = readNextLink(page)
  if (next.kind === 'broken') throw brokenAnswer(next.fault)
  return { rows, link: next.kind === 'next' ? next.query : undefined }
}

function brokenAnswer(fault: string): AdapterError {
  return new AdapterError(
    'ADP_UPSTREAM_PROTOCOL',
    `The service's reply ${fault}. No record was returned. Try again later, or tell the operator of the service.`,
  )
}

/** Bytes that represent a row, so that a link stays short enough for gateways: 4 KB for all rows of one of V3's pages. */
const BYTES = 4
/** Largest salt. One page in several thousand has two rows with the same four bytes; another salt then tells them apart. */
const MAX_SALT = 15

/** Encodes the rows that the client already has; none of `left` matches. A count is not enough, because V3 promises no order. */
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

/** Returns a function that returns true for the rows that `writeGivenRows` encoded. */
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

/** Hashes with FNV-1a and the last step of MurmurHash3, so that keys that differ in one digit spread. */
function printOf(key: string, salt: number): number {
  let hash = 0x811c9dc5 ^ Math.imul(salt, 0x9e3779b1)
  for (let at = 0; at < key.length; at += 1) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
