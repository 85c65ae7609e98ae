import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'

import * as z from 'zod'

import { AdapterError } from '../errors.ts'
import type { LearnerSearch } from '../journal/index.ts'
import { readGivenFile } from './files.ts'

/** The id of a learner, given as it is or as `-` for standard input, where no history and no list of processes shows it. Error: `ADP_USAGE`. */
export async function readLearner(given: string): Promise<string> {
  const id = given === '-' ? (await readGivenFile('-')).toString('utf8').trim() : given
  if (/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return id
  // Without the text: a mistyped id is still one.
  throw new AdapterError('ADP_USAGE', 'The id of a learner is a guid: 8-4-4-4-12 hexadecimal digits.')
}

/** What finds a learner in requests, and in the replies of V2 that are kept. */
export function searchOf(id: string): LearnerSearch {
  const pattern = patternOf(id)
  return {
    request: (request) => pattern.test(toText(request)),
    reply: (reply) => {
      if (pattern.test(reply)) return true
      const body = plainBodyOf(reply)
      // What cannot be searched goes as well: it is kept for repetitions alone.
      return body === undefined || !isText(body) || pattern.test(toText(body))
    },
  }
}

/** A guid in any case of letters, with hyphens or without, and with characters written as `\u0030` in JSON. */
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

/** False for bytes of another encoding, such as UTF-16 or a compressed part: they have control characters. */
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
 * The body of a reply as `encodeStoredReply` of src/writes wrote it: a line of JSON with its fields as the third member, then the bytes, each
 * as one character. Without its compression; undefined: it cannot be read.
 */
function plainBodyOf(reply: string): Buffer | undefined {
  try {
    const end = reply.indexOf('\n')
    const [, , fields] = keptHead.parse(JSON.parse(reply.slice(0, end)))
    const encodings = fields.filter((_, at) => at % 2 === 1 && isEncoding(fields[at - 1]))
    const decode = decoders.get(encodings.join().trim().toLowerCase())
    return decode?.(Buffer.from(reply.slice(end + 1), 'latin1'))
  } catch {
    // Another form, a broken body or one that is too large.
    return undefined
  }
}

const isEncoding = (name: string | undefined): boolean => name?.toLowerCase() === 'content-encoding'
