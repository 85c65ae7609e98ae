import { readFile } from 'node:fs/promises'

import { AdapterError } from '../errors.ts'

/** A batch read from a file, with the header that it is sent with. */
export interface BatchFile {
  readonly body: Buffer
  readonly contentType: string
}

/**
 * Reads a batch file: the body of a batch, or a whole HTTP request (`POST … HTTP/1.1`, headers, blank line, body). The
 * boundary comes from `boundary`, else from the request's Content-Type, else from the first delimiter line of the body.
 * Error: `ADP_USAGE` when the file cannot be read.
 */
export async function readBatchFile(path: string, boundary: string | undefined): Promise<BatchFile> {
  const bytes = await readBytes(path)
  const isRequest = /^POST \S+ HTTP\/1\.[01]\r?\n/.test(bytes.toString('latin1', 0, 4096))
  const { body, contentType } = isRequest ? splitRequest(bytes) : { body: bytes, contentType: undefined }
  if (boundary !== undefined)
    return { body, contentType: `multipart/mixed; boundary=${quoteIfNeeded(boundary)}` }
  if (contentType !== undefined) return { body, contentType }
  const first = /^\uFEFF?(?:[^\n]*\n)*?--(\S[^\r\n]*?)[ \t]*\r?\n/.exec(body.toString('utf8', 0, 8192))?.[1]
  if (first === undefined) {
    throw new AdapterError(
      'ADP_USAGE',
      `${path} has no delimiter line in its first 8 KiB. Name the boundary with --boundary.`,
    )
  }
  return { body, contentType: `multipart/mixed; boundary=${quoteIfNeeded(first)}` }
}

async function readBytes(path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (cause) {
    throw new AdapterError('ADP_USAGE', `The file ${path} cannot be read.`, { cause })
  }
}

function splitRequest(bytes: Buffer): { body: Buffer; contentType: string | undefined } {
  const crlf = bytes.indexOf('\r\n\r\n')
  const lf = bytes.indexOf('\n\n')
  const end = crlf !== -1 && (lf === -1 || crlf < lf) ? crlf + 4 : lf === -1 ? bytes.length : lf + 2
  const head = bytes.toString('latin1', 0, end)
  return {
    body: bytes.subarray(end),
    contentType: /^content-type[ \t]*:[ \t]*(.*?)[ \t]*\r?$/im.exec(head)?.[1],
  }
}

function quoteIfNeeded(boundary: string): string {
  return /^[\w'+.-]+$/.test(boundary) ? boundary : `"${boundary}"`
}
