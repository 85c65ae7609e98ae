import type { Exchange, RecordingNote } from './exchange.ts'

/** The files of a recording by name, in the form of `fixtures/`. */
export type RecordingFiles = ReadonlyMap<string, Buffer>

/** No host of an installation is recorded. */
export const RECORDED_HOST = 'recorded.invalid'

/**
 * Writes an exchange as files: `request.http`, `response.http` (of V2, without its framing), `case.json` as test cases have it, and
 * `recording.json` with what no message says.
 */
export function toFiles(exchange: Exchange, pseudonyms: boolean): RecordingFiles {
  const { kind, method, target, contentType, accept, prefer, body, reply, receivedMs, durationMs } = exchange
  const isWrite = kind === 'batch' || kind === 'record'
  const fields = [
    ['Host', RECORDED_HOST],
    // Placeholders: a request without credentials would be another case.
    ['Ocp-Apim-Subscription-Key', 'recorded'],
    ['Authorization', 'bearer recorded'],
    ['Content-Type', contentType],
    ['Accept', accept],
    ['Prefer', prefer],
    ['Content-Length', isWrite ? String(body.length) : undefined],
  ] as const
  const note: RecordingNote = {
    recording: 1,
    kind,
    receivedAt: new Date(receivedMs).toISOString(),
    durationMs: Math.round(durationMs),
    pseudonyms,
  }
  // The length is that of the connection, and the body was decompressed.
  const headers = reply.headers.filter(([name]) => !/^content-(?:length|encoding)$/i.test(name))
  const title = `A recorded exchange (${kind}) and the reply of V2`
  return new Map([
    ['request.http', message(`${method} ${target} HTTP/1.1`, fields, body)],
    ['response.http', message(`HTTP/1.1 ${reply.status} ${reply.reason}`, headers, reply.body)],
    ['case.json', json({ rows: ['recording'], title })],
    ['recording.json', json(note)],
  ])
}

function message(
  start: string,
  fields: readonly (readonly [name: string, value: string | undefined])[],
  body: Buffer,
): Buffer {
  const lines = fields.flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]))
  return Buffer.concat([Buffer.from([start, ...lines, '', ''].join('\r\n'), 'latin1'), body])
}

const json = (value: unknown): Buffer => Buffer.from(`${JSON.stringify(value, null, 2)}\n`)
