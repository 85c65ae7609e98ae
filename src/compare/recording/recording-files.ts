import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

import * as z from 'zod'

import { AdapterError, describeFileError } from '../../errors.ts'
import { exchangeKinds, keptFieldsOf, pairsOf } from '../wire-exchange.ts'
import type { RecordedExchange, RecordedMessage } from './exchange.ts'
import { readSealed, SEALED } from './sealed-file.ts'

/** The facts about an exchange that neither the request nor the response contains. */
const noteForm = z.object({
  kind: z.enum(exchangeKinds),
  receivedAt: z.iso.datetime(),
  durationMs: z.number(),
})

/** The files of a recording before encryption: the content of each file by its name. */
export type RecordingFiles = ReadonlyMap<string, Buffer>

/** Converts an exchange to the files `request.http`, `response.http` (without the framing of the body) and `recording.json`. */
export function toFiles(exchange: RecordedExchange): RecordingFiles {
  const { kind, target, request, reply, receivedMs, durationMs } = exchange
  const isWrite = kind === 'batch' || kind === 'record'
  const fields = [
    // The recording must not name the host of an installation.
    ['Host', 'recorded.invalid'],
    // Placeholders replace the credentials, because the adapter would refuse the recorded request without them.
    ['Ocp-Apim-Subscription-Key', 'recorded'],
    ['Authorization', 'bearer recorded'],
    ...pairsOf(request),
    ...(isWrite ? [['Content-Length', String(request.body.length)] as const] : []),
  ] as const
  const receivedAt = new Date(receivedMs).toISOString()
  const note: z.infer<typeof noteForm> = { kind, receivedAt, durationMs: Math.round(durationMs) }
  // The stored body is decompressed, so its original length and encoding no longer apply.
  const replyFields = pairsOf(reply).filter(([name]) => !/^content-(?:length|encoding)$/i.test(name))
  return new Map([
    ['request.http', message(`${isWrite ? 'POST' : 'GET'} ${target} HTTP/1.1`, fields, request.body)],
    ['response.http', message(`HTTP/1.1 ${reply.status} ${reply.reason}`, replyFields, reply.body)],
    ['recording.json', Buffer.from(JSON.stringify(note))],
  ])
}

function message(start: string, fields: ReturnType<typeof pairsOf>, body: Buffer): Buffer {
  const lines = fields.map(([name, value]) => `${name}: ${value}`)
  return Buffer.concat([Buffer.from([start, ...lines, '', ''].join('\r\n'), 'latin1'), body])
}

/** Lists the recordings in `folder`, oldest first, or `folder` itself if it is a recording. Throws `ADP_USAGE` if there is no recording. */
export async function listRecordings(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((cause: unknown) => {
    throw new AdapterError(
      'ADP_USAGE',
      `${folder} cannot be read: ${describeFileError(cause)}. Nothing was done. Check the path and the permissions.`,
      { cause },
    )
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
  throw new AdapterError(
    'ADP_USAGE',
    `${folder} has no recording. Nothing was done. Name a folder that markbridge record wrote.`,
  )
}

const isNote = (name: string): boolean => name === `recording.json${SEALED}`

/** Compares names by the number at their start, so that 1000000 sorts after 999999. */
export function byCounter(one: string, other: string): number {
  return Number.parseInt(one, 10) - Number.parseInt(other, 10) || (one < other ? -1 : 1)
}

/** Decrypts and parses a recording. Throws the errors of `readSealed`. */
export async function readRecording(folder: string, key: Uint8Array): Promise<RecordedExchange> {
  const read = (file: string): Promise<Buffer> => readSealed(key, join(folder, file + SEALED))
  const note: unknown = JSON.parse((await read('recording.json')).toString())
  const { kind, receivedAt, durationMs } = noteForm.parse(note)
  const request = split(await read('request.http'))
  const reply = split(await read('response.http'))
  const [, target = ''] = /^\S+ (\S+)/.exec(request.start) ?? []
  const [, status, reason = ''] = /^\S+ (\d{3}) (.*)$/.exec(reply.start) ?? []
  return {
    ...{ kind, target },
    request: { fields: keptFieldsOf(request), body: request.body },
    reply: { status: Number(status), reason, fields: reply.fields, body: reply.body },
    ...{ receivedMs: Date.parse(receivedAt), durationMs },
  }
}

function split(bytes: Buffer): RecordedMessage & { readonly start: string } {
  const end = bytes.indexOf('\r\n\r\n')
  const [start = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const fields = lines.flatMap((line) => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon), line.slice(colon + 1).trim()]
  })
  return { start, fields, body: bytes.subarray(end + 4) }
}
