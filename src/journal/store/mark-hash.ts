/** The mark that the service returned for a confirmed record. */
export interface ConfirmedMark {
  readonly externalId: string
  /** Its `RecordedOn`, ms since the epoch; NaN: none. */
  readonly recordedMs: number
}

/** Bytes of a mark in a row: 8 of the salted hash of its id, and its time as a double. */
export const MARK_BYTES = 16
const HASH_BYTES = 8

export type HashKeys = (keys: readonly string[]) => Uint8Array

/** The salted hash of a mark's id, in hexadecimal digits. */
export function hashMarkId(hashKeys: HashKeys, externalId: string): string {
  return Buffer.from(hashKeys([`mark ${externalId.toLowerCase()}`])).toString('hex', 0, HASH_BYTES)
}

/** Writes marks one after another, each as `MARK_BYTES`; one that is not known as zeros. */
export function encodeMarks(hashKeys: HashKeys, marks: readonly (ConfirmedMark | undefined)[]): Buffer {
  const bytes = Buffer.alloc(marks.length * MARK_BYTES)
  for (const [index, mark] of marks.entries()) {
    if (mark === undefined) continue
    const at = index * MARK_BYTES
    bytes.write(hashMarkId(hashKeys, mark.externalId), at, 'hex')
    bytes.writeDoubleBE(mark.recordedMs, at + HASH_BYTES)
  }
  return bytes
}

/** Reads what `encodeMarks` wrote for one mark; undefined for other bytes. */
export function decodeMark(
  bytes: Uint8Array | null,
): { readonly idHash: string; readonly recordedMs: number } | undefined {
  if (bytes?.length !== MARK_BYTES) return undefined
  const mark = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return { idHash: mark.toString('hex', 0, HASH_BYTES), recordedMs: mark.readDoubleBE(HASH_BYTES) }
}
