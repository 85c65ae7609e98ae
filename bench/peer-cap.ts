import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

import * as z from 'zod'

/** A request as the parser of `@sap/cds` gives it out. */
export interface CapRequest {
  readonly content_id?: string
  readonly body?: unknown
}

type MultipartToJson = (body: string, boundary: string) => Promise<{ requests: CapRequest[] }>

const BOUNDARY = /boundary=([\d\w'()+_,\-./:=?]{1,70})/i

/**
 * The `$batch` parser of `@sap/cds`, called as its own middleware calls it: with the body as one text (express.text) and the
 * boundary of the header. It parses headers and JSON itself. The package exports no name for it, so it is taken by its path.
 */
export function createCapDecoder(): (bytes: Buffer, contentType: string) => Promise<CapRequest[]> {
  const require = createRequire(import.meta.url)
  const path = './node_modules/@sap/cds/libx/odata/parse/multipartToJson.js'
  const loaded: unknown = require(fileURLToPath(new URL(path, import.meta.url)))
  const multipartToJson = z.custom<MultipartToJson>((value) => typeof value === 'function').parse(loaded)
  return async (bytes, contentType) => {
    const boundary = BOUNDARY.exec(contentType)?.[1] ?? ''
    const { requests } = await multipartToJson(bytes.toString('utf8'), boundary)
    return requests
  }
}
