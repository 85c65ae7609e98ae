import type { FlatReply } from '../v2/index.ts'

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
