import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'

import * as z from 'zod'

import { AdapterError } from '../errors.ts'
import type { LearnerSearch } from '../journal/index.ts'
import { readGivenFile } from './files.ts'

/**
 * Reads the id of a learner from the argument. For `-` it reads standard input, which keeps the id out of the shell history and the list of
 * processes. Throws `ADP_USAGE` if the id is not a GUID.
 */
export async function readLearner(given: string): Promise<string> {
  const id = given === '-' ? (await readGivenFile('-')).toString('utf8').trim() : given
  if (/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return id
  // The message does not quote the text, because even a mistyped id is personal data.
  throw new AdapterError(
    'ADP_USAGE',
    'The id of the learner is not a GUID. Nothing was erased. Give 8-4-4-4-12 hexadecimal digits.',
  )
}

export function searchOf(id: string): LearnerSearch {
  const pattern = patternOf(id)
  return {
    request: (request) => pattern.test(toText(request)),
    reply: (reply) => {
      if (pattern.test(reply)) return true
      const body = plainBodyOf(reply)
      // A reply that cannot be searched is erased too. Stored replies only serve to answer resent requests.
      return body === undefined || !isText(body) || pattern.test(toText(body))
    },
  }
}

/**
 * Returns a pattern for a GUID in upper or lower case, with or without hyphens. It also matches characters that JSON escapes, such as
 * `\u0030`.
 */
function patternOf(id: string): RegExp {
  const characters = Array.from(id.toLowerCase(), (character) => {
    const codes = [...new Set([character, character.toUpperCase()])].map((one) =>
      one.charCodeAt(0).toString(16).padStart(4, '0'),
    )
    return `(?:${character}|\\\\u(?:${codes.join('|')}))${character === '-' ? '?' : ''}`
  })
  return new RegExp(characters.join(''), 'i')
}

const toText = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')

/** Returns false for bytes with control characters, such as UTF-16 text or a compressed part. */
const isText = (body: Uint8Array): boolean =>
  body.every((byte) => byte >= 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d)

const MAX_INFLATED_BYTES = 268_435_456
const limit = { maxOutputLength: MAX_INFLATED_BYTES }
const decoders: ReadonlyMap<string, (body: Buffer) => Buffer> = new Map([
  ['', (body) => body],
  ['identity', (body) => body],
  ['gzip', (body) => gunzipSync(body, limit)],
  ['x-gzip', (body) => gunzipSync(body, limit)],
  ['deflate', (body) => inflateSync(body, limit)],
  ['br', (body) => brotliDecompressSync(body, limit)],
])

const keptHead = z.tuple([z.unknown(), z.unknown(), z.array(z.string())])

/**
 * Returns the decompressed body of a stored reply, or `undefined` if the reply cannot be read. `encodeStoredReply` writes a line of JSON,
 * whose third member has the header fields, and then the body with one character per byte.
 */
function plainBodyOf(reply: string): Buffer | undefined {
  try {
    const end = reply.indexOf('\n')
    const [, , fields] = keptHead.parse(JSON.parse(reply.slice(0, end)))
    const encodings = fields.filter((_, at) => at % 2 === 1 && isEncoding(fields[at - 1]))
    const decode = decoders.get(encodings.join().trim().toLowerCase())
    return decode?.(Buffer.from(reply.slice(end + 1), 'latin1'))
  } catch {
    // The reply has another form, or its body is damaged or too large.
    return undefined
  }
}

const isEncoding = (name: string | undefined): boolean => name?.toLowerCase() === 'content-encoding'
