import { AdapterError } from '../errors.ts'
import { readRecordedFile } from './recordings/read-recordings.ts'

/** The id of a learner, given as it is or as `-` for standard input, where no history and no list of processes shows it. Error: `ADP_USAGE`. */
export async function readLearner(given: string): Promise<string> {
  const id = given === '-' ? (await readRecordedFile('-')).toString('utf8').trim() : given
  if (/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return id
  // Without the text: a mistyped id is still one.
  throw new AdapterError('ADP_USAGE', 'The id of a learner is a guid: 8-4-4-4-12 hexadecimal digits.')
}

/** Finds a guid in the bytes of a request, in any case of letters and with digits written as `\u0030` in JSON. */
export function mentionsLearner(id: string): (request: Uint8Array) => boolean {
  const characters = Array.from(id.toLowerCase(), (character) => {
    const codes = [...new Set([character, character.toUpperCase()])].map((one) =>
      one.charCodeAt(0).toString(16).padStart(4, '0'),
    )
    return `(?:${character}|\\\\u(?:${codes.join('|')}))`
  })
  const pattern = new RegExp(characters.join(''), 'i')
  return (request) =>
    pattern.test(Buffer.from(request.buffer, request.byteOffset, request.length).toString('latin1'))
}
