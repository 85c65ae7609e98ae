import busboy from 'busboy'
import type { Request } from 'express'

import { AdapterError } from '../errors.ts'
import type { Visit } from './access/visit.ts'

type Upload = Pick<Visit, 'form' | 'file'>

const MAX_FIELDS = 20

/** Reads a form with one file into memory. Throws `ADP_TOO_LARGE` if the file or a field is too large, and `ADP_BODY` if the form cannot be read. */
export async function readUpload(request: Request, maxBytes: number): Promise<Upload> {
  try {
    return await parse(request, maxBytes)
  } catch (cause) {
    request.unpipe()
    // The rest of the request is read and discarded, so that the browser receives the response.
    request.resume()
    if (cause instanceof AdapterError) throw cause
    throw new AdapterError('ADP_BODY', 'The form cannot be read. Nothing was stored. Send the form again.', {
      cause,
    })
  }
}

/** Parses the form. Rejects with an `AdapterError` if the file is too large or the upload breaks off, and else with the error of the parser. */
function parse(request: Request, maxBytes: number): Promise<Upload> {
  const { headers } = request
  const tooLarge = `The file is larger than ${maxBytes / 1_048_576} MiB. Nothing was stored. Check the file on the command line: markbridge check <file>.`
  return new Promise((resolve, reject) => {
    const form = new URLSearchParams()
    let pieces: Buffer[] | undefined
    const limits = { files: 1, fileSize: maxBytes, fields: MAX_FIELDS, fieldSize: maxBytes }
    const parser = busboy({ headers, limits })
    parser.on('field', (name, value, { valueTruncated }) => {
      if (valueTruncated) reject(new AdapterError('ADP_TOO_LARGE', tooLarge))
      else form.append(name, value)
    })
    parser.on('file', (_name, file, { filename }) => {
      const own: Buffer[] = []
      file.on('data', (piece: Buffer) => own.push(piece))
      file.on('limit', () => reject(new AdapterError('ADP_TOO_LARGE', tooLarge)))
      file.on('end', () => {
        // A browser sends a file without a name if none was chosen.
        if (filename !== undefined && filename !== '') pieces = own
      })
    })
    parser.on('error', reject)
    parser.on('close', () => resolve({ form, file: pieces && Buffer.concat(pieces) }))
    request.on('aborted', () =>
      reject(
        new AdapterError(
          'ADP_BODY',
          'The upload was interrupted. Nothing was stored. Upload the file again.',
        ),
      ),
    )
    request.pipe(parser)
  })
}
