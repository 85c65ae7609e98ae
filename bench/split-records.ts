import type { PostedRecord } from './posted-records.ts'

/**
 * The physical limit: finds the delimiters and blank lines with `Buffer.indexOf` and parses each body with `JSON.parse`. It
 * reads no header but the Content-ID and checks nothing, so it is no decoder; it shows what is left to win.
 */
export function splitRecords(bytes: Buffer): PostedRecord[] {
  const records: PostedRecord[] = []
  const opening = bytes.indexOf('boundary=') + 'boundary='.length
  const delimiter = Buffer.from(`--${bytes.toString('latin1', opening, bytes.indexOf('\r\n', opening))}`)
  let start = bytes.indexOf(delimiter)
  for (;;) {
    const next = bytes.indexOf(delimiter, start + delimiter.length)
    if (next === -1) return records
    const id = bytes.indexOf('Content-ID: ', start) + 'Content-ID: '.length
    const mimeEnd = bytes.indexOf('\r\n\r\n', id)
    const httpEnd = bytes.indexOf('\r\n\r\n', mimeEnd + 4)
    records.push({
      contentId: bytes.toString('latin1', id, mimeEnd),
      body: JSON.parse(bytes.toString('utf8', httpEnd + 4, next)),
    })
    start = next
  }
}
