import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

import * as z from 'zod'

/** A request in the form in which the parser of `@sap/cds` returns it. */
export interface CapRequest {
  readonly content_id?: string
  readonly body?: unknown
}

type MultipartToJson = (body: string, boundary: string) => Promise<{ requests: CapRequest[] }>

const BOUNDARY = /boundary=([\d\w'()+_,\-./:=?]{1,70})/i

/**
 * Loads the `$batch` parser of `@sap/cds`, by its path because the package does not export it. Calls the parser as the middleware of
 * the package does, with the body as a text and the boundary of the header. The parser reads the headers and the JSON.
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
