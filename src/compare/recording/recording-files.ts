import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'

import * as z from 'zod'

import { AdapterError, describeFileError } from '../../errors.ts'
import { exchangeKinds, keptFieldsOf, pairsOf } from '../wire-exchange.ts'
import type { RecordedExchange, RecordedMessage } from './exchange.ts'
import { openSealed, SEALED } from './sealed-file.ts'

/** What no message of an exchange says; without `served` it is `v2`. */
const noteForm = z.object({
  recording: z.literal(1),
  kind: z.enum(exchangeKinds),
  served: z.enum(['v2', 'v3']).default('v2'),
  /** Moved with the dates of pseudonyms. */
  receivedAt: z.iso.datetime(),
  durationMs: z.number(),
  /** True: its values are pseudonyms. */
  pseudonyms: z.boolean(),
})

/** The files of a recording by name. */
export type RecordingFiles = ReadonlyMap<string, Buffer>

/** Writes an exchange as files: `request.http`, `response.http` (without its framing), and `recording.json` with what no message says. */
export function toFiles(exchange: RecordedExchange, pseudonyms: boolean): RecordingFiles {
  const { kind, served, method, target, request, reply, receivedMs, durationMs } = exchange
  const isWrite = kind === 'batch' || kind === 'record'
  const fields = [
    // No host of an installation is recorded.
    ['Host', 'recorded.invalid'],
    // Placeholders: a request without credentials would be another case.
    ['Ocp-Apim-Subscription-Key', 'recorded'],
    ['Authorization', 'bearer recorded'],
    ...pairsOf(request),
    ...(isWrite ? [['Content-Length', String(request.body.length)] as const] : []),
  ] as const
  const note: z.infer<typeof noteForm> = {
    ...{ recording: 1, kind, served, receivedAt: new Date(receivedMs).toISOString() },
    ...{ durationMs: Math.round(durationMs), pseudonyms },
  }
  // The length is that of the connection, and the body was decompressed.
  const replyFields = pairsOf(reply).filter(([name]) => !/^content-(?:length|encoding)$/i.test(name))
  return new Map([
    ['request.http', message(`${method} ${target} HTTP/1.1`, fields, request.body)],
    ['response.http', message(`HTTP/1.1 ${reply.status} ${reply.reason}`, replyFields, reply.body)],
    ['recording.json', Buffer.from(`${JSON.stringify(note, null, 2)}\n`)],
  ])
}

function message(start: string, fields: ReturnType<typeof pairsOf>, body: Buffer): Buffer {
  const lines = fields.map(([name, value]) => `${name}: ${value}`)
  return Buffer.concat([Buffer.from([start, ...lines, '', ''].join('\r\n'), 'latin1'), body])
}

/**
 * Lists the folders of recordings below `folder`, oldest first: it may be one recording itself. Error: `ADP_USAGE` for a folder that cannot be
 * read or has none.
 */
export async function listRecordings(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((cause: unknown) => {
    throw new AdapterError('ADP_USAGE', `${folder} cannot be read: ${describeFileError(cause)}.`, { cause })
  })
  if (entries.some(({ name }) => isNote(name))) return [folder]
  const names = entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name)
    .sort(byCounter)
  const found: string[] = []
  for (const name of names)
    if ((await readdir(join(folder, name))).some(isNote)) found.push(join(folder, name))
  if (found.length > 0) return found
  throw new AdapterError('ADP_USAGE', `${folder} has no recording: no folder with a recording.json.`)
}

const isNote = (name: string): boolean => name === 'recording.json' || name === `recording.json${SEALED}`

/** Names of recordings by the counter at their front, so that the millionth follows the one before it. */
export function byCounter(one: string, other: string): number {
  return Number.parseInt(one, 10) - Number.parseInt(other, 10) || (one < other ? -1 : 1)
}

/**
 * Reads one recording, `name` is that of its folder. Errors: `ADP_CONFIGURATION` for one that is encrypted, without its key or with another one; `ADP_USAGE` for
 * files that are missing or not as they were written.
 */
export async function readRecording(folder: string, key: Uint8Array | undefined) {
  const name = basename(folder)
  const names = new Set(await readdir(folder))
  const read = async (file: string): Promise<Buffer> => {
    if (names.has(file)) return readFile(join(folder, file))
    if (!names.has(file + SEALED)) throw new AdapterError('ADP_USAGE', `${folder} has no ${file}.`)
    if (key === undefined)
      throw new AdapterError('ADP_CONFIGURATION', `${folder} is encrypted. Name its key with --key.`)
    return openSealed(key, `${name}/${file}`, await readFile(join(folder, file + SEALED)))
  }
  const damaged = (): AdapterError => new AdapterError('ADP_USAGE', `${folder} is not as it was recorded.`)
  const note = parseNote(await read('recording.json'))
  const request = split(await read('request.http'))
  const reply = split(await read('response.http'))
  const [, method, target] = /^(\S+) (\S+) HTTP\/1\.1$/.exec(request?.start ?? '') ?? []
  const [, status, reason = ''] = /^HTTP\/1\.1 (\d{3}) (.*)$/.exec(reply?.start ?? '') ?? []
  if (note === undefined || request === undefined || reply === undefined) throw damaged()
  if (method === undefined || target === undefined || status === undefined) throw damaged()
  const { kind, served, pseudonyms, receivedAt, durationMs } = note
  return {
    ...{ name, pseudonyms },
    exchange: {
      ...{ kind, served, method, target },
      request: { fields: keptFieldsOf(request), body: request.body },
      reply: { status: Number(status), reason, fields: reply.fields, body: reply.body },
      ...{ receivedMs: Date.parse(receivedAt), durationMs },
    },
  }
}

function parseNote(bytes: Buffer): z.infer<typeof noteForm> | undefined {
  try {
    return noteForm.parse(JSON.parse(bytes.toString()))
  } catch {
    return undefined
  }
}

/** The parts of a message; undefined: it has no head. */
function split(bytes: Buffer): (RecordedMessage & { readonly start: string }) | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const [start = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const fields = lines.flatMap((line) => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon), line.slice(colon + 1).trim()]
  })
  return { start, fields, body: bytes.subarray(end + 4) }
}
