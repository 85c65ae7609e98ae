import { randomUUID } from 'node:crypto'

/** The two batch formats of OData 4.01: multipart (Protocol 11.7.7) and JSON (JSON Format 19). */
export type BatchFormat = 'multipart' | 'json'

/** The body of a `$batch` and the media types around it. */
export interface EncodedBatch {
  readonly contentType: string
  readonly accept: string
  readonly body: string
}

/**
 * Writes the JSON of records as one `$batch`. Every record is a request of its own, outside any changeset, so that none fails
 * with another; its id is its position, from 1. The URLs are relative to the batch's own: a gateway may have put another path
 * before it.
 */
export function encodeV3Batch(records: readonly string[], format: BatchFormat): EncodedBatch {
  return format === 'json' ? encodeJson(records) : encodeMultipart(records)
}

const json = 'application/json'

function encodeJson(records: readonly string[]): EncodedBatch {
  const headers = `{"content-type":"${json}","accept":"${json}","prefer":"return=representation"}`
  // The records are JSON already, on one line each.
  const requests = records.map(
    (record, index) =>
      `{"id":"${index + 1}","method":"POST","url":"AttendanceRecords","headers":${headers},"body":${record}}`,
  )
  return { contentType: json, accept: json, body: `{"requests":[${requests.join(',')}]}` }
}

function encodeMultipart(records: readonly string[]): EncodedBatch {
  const boundary = `batch_${randomUUID()}`
  const parts = records.map(
    (record, index) =>
      `--${boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: ${index + 1}\r\n\r\n` +
      `POST AttendanceRecords HTTP/1.1\r\nContent-Type: ${json}\r\nAccept: ${json}\r\nPrefer: return=representation\r\n\r\n` +
      `${record}\r\n`,
  )
  return {
    contentType: `multipart/mixed; boundary=${boundary}`,
    accept: 'multipart/mixed',
    body: `${parts.join('')}--${boundary}--\r\n`,
  }
}
