import type { Partner } from '../../partners/partner.ts'
import { type Exchange, RECORDED_HOST, type RecordingNote } from './exchange.ts'

import type { V3Script } from './to-v3-script.ts'

/** The files of a recording by name, in the form of `fixtures/`. */
export type RecordingFiles = ReadonlyMap<string, Buffer>

/** What is recorded besides the messages. */
export interface FileOptions {
  readonly pseudonyms: boolean
  /** Its settings decide what V3 gets. */
  readonly partner: Partner
  /** Undefined: there is none, or it is not known. */
  readonly v3: V3Script | undefined
}

/**
 * Writes an exchange as files: `request.http`, `response.http` (without its framing), those of V3 and `case.json` as test cases have
 * them, and `recording.json` with what no message says.
 */
export function toFiles(exchange: Exchange, { pseudonyms, partner, v3 }: FileOptions): RecordingFiles {
  const { kind, served, method, target, contentType, accept, prefer } = exchange
  const { body, reply, receivedMs, durationMs } = exchange
  const isWrite = kind === 'batch' || kind === 'record'
  const fields = [
    ['Host', RECORDED_HOST],
    // Placeholders: a request without credentials would be another case.
    ['Ocp-Apim-Subscription-Key', 'recorded'],
    ['Authorization', 'bearer recorded'],
    ['Content-Type', contentType],
    ['Accept', accept],
    ['Prefer', prefer],
    ['OData-Version', exchange.odataVersion],
    ['OData-MaxVersion', exchange.odataMaxVersion],
    ['Content-Length', isWrite ? String(body.length) : undefined],
  ] as const
  const note: RecordingNote = {
    recording: 1,
    kind,
    served,
    receivedAt: new Date(receivedMs).toISOString(),
    durationMs: Math.round(durationMs),
    pseudonyms,
  }
  // The length is that of the connection, and the body was decompressed.
  const headers = reply.headers.filter(([name]) => !/^content-(?:length|encoding)$/i.test(name))
  const title = `A recorded exchange (${kind}) that ${served.toUpperCase()} served`
  return new Map([
    ['request.http', message(`${method} ${target} HTTP/1.1`, fields, body)],
    ['response.http', message(`HTTP/1.1 ${reply.status} ${reply.reason}`, headers, reply.body)],
    ...(v3 === undefined ? [] : [['v3-request.json', listOf(v3.requests)] as const]),
    ...(v3?.responses === undefined ? [] : [['v3-response.json', listOf(v3.responses)] as const]),
    ['case.json', json({ rows: ['recording'], title, partner: settingsOf(partner) })],
    ['recording.json', json(note)],
  ])
}

/** One body a line, as test cases have them. */
const listOf = (bodies: readonly string[]): Buffer =>
  Buffer.from(bodies.length === 0 ? '[]\n' : `[\n${bodies.map((text) => `  ${text}`).join(',\n')}\n]\n`)

/** The settings that decide what V3 gets and the form of the reply, as the configuration has them. */
function settingsOf({
  layout,
  dataEnvelope,
  msgtypeResponse,
  mismatch,
  mapping,
  bodyProfile,
}: Partner): object {
  const { unmappedFields, changeProcessName, ...types } = mapping
  const quirks = { dataEnvelope, msgtypeResponse, mismatch }
  return { layout, quirks, unmappedFields, changeProcessName, v3: { bodyProfile, ...types } }
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
