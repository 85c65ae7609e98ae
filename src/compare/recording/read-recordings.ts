import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'

import * as z from 'zod'

import { AdapterError, describeFileError } from '../../errors.ts'
import { type Exchange, headerOf, recordedKinds, type RecordingNote, versionOf } from './exchange.ts'
import { openSealed, SEALED } from './seal-file.ts'

/** A recording that was read. */
export interface ReadRecording {
  /** The name of its folder. */
  readonly name: string
  readonly exchange: Exchange
  readonly pseudonyms: boolean
}

const noteSchema = z.object({
  recording: z.literal(1),
  kind: z.enum(recordedKinds),
  served: z.enum(['v2', 'v3']).optional(),
  receivedAt: z.iso.datetime(),
  durationMs: z.number(),
  pseudonyms: z.boolean(),
})

/**
 * Lists the folders of recordings below `folder`, oldest first: it may be one recording itself. Error: `ADP_USAGE` for a folder that cannot be
 * read or has none.
 */
export async function listRecordings(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((cause: unknown) => {
    throw new AdapterError('ADP_USAGE', `${folder} cannot be read: ${describeFileError(cause)}.`, { cause })
  })
  if (entries.some(({ name }) => isNote(name))) return [folder]
  const folders = entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => join(folder, name))
  const found: string[] = []
  for (const one of folders.sort(byNumber)) if ((await readdir(one)).some(isNote)) found.push(one)
  if (found.length > 0) return found
  throw new AdapterError('ADP_USAGE', `${folder} has no recording: no folder with a recording.json.`)
}

const isNote = (name: string): boolean => name === 'recording.json' || name === `recording.json${SEALED}`

/** By the counter at their front, so that the millionth follows the one before it. */
function byNumber(one: string, other: string): number {
  const [a, b] = [basename(one), basename(other)]
  return Number.parseInt(a, 10) - Number.parseInt(b, 10) || (a < b ? -1 : 1)
}

/**
 * Reads one recording. Errors: `ADP_CONFIGURATION` for one that is encrypted, without its key or with another one; `ADP_USAGE` for
 * files that are missing or not as they were written.
 */
export async function readRecording(folder: string, key: Uint8Array | undefined): Promise<ReadRecording> {
  const name = basename(folder)
  const names = new Set(await readdir(folder))
  const read = async (file: string): Promise<Buffer> => {
    if (names.has(file)) return readFile(join(folder, file))
    if (!names.has(file + SEALED)) throw new AdapterError('ADP_USAGE', `${folder} has no ${file}.`)
    if (key === undefined)
      throw new AdapterError('ADP_CONFIGURATION', `${folder} is encrypted. Name its key with --key.`)
    return openSealed(key, `${name}/${file}`, await readFile(join(folder, file + SEALED)))
  }
  const note = parseNote(await read('recording.json'), folder)
  const request = split(await read('request.http'), folder)
  const reply = split(await read('response.http'), folder)
  const [, method = '', target = ''] = /^(\S+) (\S+) HTTP\/1\.1$/.exec(request.start) ?? []
  const [, status = '', reason = ''] = /^HTTP\/1\.1 (\d{3}) (.*)$/.exec(reply.start) ?? []
  if (target === '' || status === '') throw damaged(folder)
  const field = (header: string): string | undefined => headerOf(request.headers, header)
  return {
    name,
    pseudonyms: note.pseudonyms,
    exchange: {
      kind: note.kind,
      served: note.served ?? 'v2',
      method,
      target,
      contentType: field('content-type'),
      accept: field('accept'),
      prefer: field('prefer'),
      odataVersion: versionOf(field('odata-version')),
      odataMaxVersion: versionOf(field('odata-maxversion')),
      body: request.body,
      reply: { status: Number(status), reason, headers: reply.headers, body: reply.body },
      receivedMs: Date.parse(note.receivedAt),
      durationMs: note.durationMs,
    },
  }
}

function parseNote(bytes: Buffer, folder: string): RecordingNote {
  try {
    return noteSchema.parse(JSON.parse(bytes.toString()))
  } catch (cause) {
    throw damaged(folder, cause)
  }
}

interface Message {
  readonly start: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
}

function split(bytes: Buffer, folder: string): Message {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) throw damaged(folder)
  const [start = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const headers = lines.map((line) => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon), line.slice(colon + 1).trim()] as const
  })
  return { start, headers, body: bytes.subarray(end + 4) }
}

const damaged = (folder: string, cause?: unknown): AdapterError =>
  new AdapterError('ADP_USAGE', `${folder} is not as it was recorded.`, cause === undefined ? {} : { cause })
