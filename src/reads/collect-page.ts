import { AdapterError } from '../errors.ts'
import { type ReadPlan, readNextLink, type ReadRow } from '../translate/index.ts'
import type { FlatReply } from '../v2/index.ts'

/** The position at which a page of V2 starts: a page of V3, and the rows of that page that come before the start. Valid on any instance. */
export interface ReadPosition {
  /** The index in `ReadPlan.queries` of the query that is being read. */
  readonly window: number
  /** The query of the next link that leads to the page of V3, or `undefined` for the first page of the window. */
  readonly link: string | undefined
  /** The rows of the page of V3 that the client already has, in the form of `writeGivenRows`. An empty string if the client has none. */
  readonly given: string
}

interface CollectedPage {
  readonly rows: readonly FlatReply[]
  /** The position of the next page, or `undefined` if no row is left. */
  readonly next: ReadPosition | undefined
  /** The number of recorded marks that were read. If the plan counts, this is the number of all marks. */
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
  /** True if no row after this page is wanted, for example because the page uses up `$top`. */
  readonly last: boolean
  /** True if all recorded marks are counted, up to the last page of V3. */
  readonly count: boolean
}

/**
 * Reads V3 page by page until the page of V2 is full, with only one page of V3 in memory. Reads on until one more row is found, so that a
 * next link always leads to a row. If V3 itself leaves out rows without a mark (`narrowed`), a next link of V3 is enough proof of another
 * row, except on the first page, because some services give a next link after any full page, even the last. Throws `ADP_UPSTREAM_PROTOCOL`
 * for a reply that is not a collection of records.
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

/** Returns the rows and next link of a page. Throws `ADP_UPSTREAM_PROTOCOL` for any other value, or for a link in an unknown form. */
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

/** The number of bytes that represent a row in a link. 750 rows then take 4 KB in base64, so that gateways accept the link. */
const BYTES = 4
/** The highest salt that is tried. Two rows of a page may have the same four bytes, and another salt then tells them apart. */
const MAX_SALT = 15

/**
 * Encodes the rows that the client already has as fingerprints. Chooses a salt that gives none of the rows `left` the fingerprint of an
 * encoded row. A count of rows would not suffice, because V3 promises no order.
 */
export function writeGivenRows(given: readonly FlatReply[], left: readonly FlatReply[]): string {
  const keys = new Set(given.map(keyOf))
  if (keys.size === 0) return ''
  const others = left.map(keyOf).filter((key) => !keys.has(key))
  for (let salt = 0; ; salt += 1) {
    const fingerprints = new Set(Array.from(keys, (key) => fingerprintOf(key, salt)))
    if (salt < MAX_SALT && others.some((key) => fingerprints.has(fingerprintOf(key, salt)))) continue
    const bytes = Buffer.alloc(1 + fingerprints.size * BYTES)
    let at = bytes.writeUInt8(salt)
    for (const fingerprint of fingerprints) at = bytes.writeUInt32BE(fingerprint, at)
    return bytes.toString('base64url')
  }
}

/** Returns a function that returns true for the rows that `writeGivenRows` encoded in `text`. */
export function readGivenRows(text: string): (row: FlatReply) => boolean {
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.length === 0) return () => false
  const salt = bytes.readUInt8()
  const fingerprints = new Set<number>()
  for (let at = 1; at + BYTES <= bytes.length; at += BYTES) fingerprints.add(bytes.readUInt32BE(at))
  return (row) => fingerprints.has(fingerprintOf(keyOf(row), salt))
}

function keyOf({ ExternalID, Learner, AttendableEvent }: FlatReply): string {
  return `${ExternalID} ${Learner} ${AttendableEvent}`.toLowerCase()
}

/** Hashes a key with FNV-1a and the final step of MurmurHash3, so that keys that differ in one digit get very different hashes. */
function fingerprintOf(key: string, salt: number): number {
  let hash = 0x811c9dc5 ^ Math.imul(salt, 0x9e3779b1)
  for (let at = 0; at < key.length; at += 1) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
