import busboy from 'busboy'
import type { Request } from 'express'

import { AdapterError } from '../errors.ts'

/** A form with a file. */
interface Upload {
  readonly form: URLSearchParams
  /** Undefined: none was chosen. */
  readonly file: Buffer | undefined
}

const FIELD_BYTES = 4_096
const MAX_FIELDS = 20

/** Reads a form with one file. Nothing of it is written anywhere. Errors: `ADP_TOO_LARGE`, `ADP_BODY`. */
export function readUpload(request: Request, maxBytes: number): Promise<Upload> {
  return new Promise((resolve, reject) => {
    const form = new URLSearchParams()
    let pieces: Buffer[] | undefined
    const fail = (error: AdapterError): void => {
      request.unpipe(parser)
      // What is left of it is read and dropped, so that the browser gets the answer.
      request.resume()
      reject(error)
    }
    const limits = { files: 1, fileSize: maxBytes, fields: MAX_FIELDS, fieldSize: FIELD_BYTES }
    const parser = createParser(request, limits)
    parser.on('field', (name, value) => form.append(name, value))
    parser.on('file', (_name, file, { filename }) => {
      const own: Buffer[] = []
      file.on('data', (piece: Buffer) => own.push(piece))
      file.on('limit', () =>
        fail(
          new AdapterError(
            'ADP_TOO_LARGE',
            `The file is larger than ${maxBytes / 1_048_576} MiB. Check it on the command line: markbridge check <file>.`,
          ),
        ),
      )
      file.on('end', () => {
        // A browser sends a file without a name where none was chosen.
        if (filename !== undefined && filename !== '') pieces = own
      })
    })
    parser.on('error', (cause) => fail(new AdapterError('ADP_BODY', 'The form cannot be read.', { cause })))
    parser.on('close', () => resolve({ form, file: pieces && Buffer.concat(pieces) }))
    request.on('aborted', () => fail(new AdapterError('ADP_BODY', 'The upload was broken off.')))
    request.pipe(parser)
  })
}

function createParser({ headers }: Request, limits: busboy.Limits): busboy.Busboy {
  try {
    return busboy({ headers, limits })
  } catch (cause) {
    throw new AdapterError('ADP_BODY', 'The form cannot be read.', { cause })
  }
}
