import { Readable } from 'node:stream'

import { parseConfig } from '../../../src/config/index.ts'
import { AdapterError } from '../../../src/errors.ts'
import { readBody } from '../../../src/http/body.ts'
import { type Batch, decodeBatch, defaultBatchLimits } from '../../../src/v2/index.ts'
import type { Fixture } from './fixture.ts'
import { headerOf } from './raw-message.ts'

/** The code of the error that a request is refused with. */
export interface Refusal {
  readonly code: string
}

/** Decodes the body of a fixture; throws what it is refused for. */
export function decodeBody({ request, limits, partner }: Fixture, body: Buffer): Batch {
  const { serviceHosts } = parseConfig({
    upstreams: { v3: { baseUrl: 'http://v3.example' } },
    partners: [{ id: 'partner', match: { any: true }, ...partner }],
  }).partners[0] ?? { serviceHosts: undefined }
  return decodeBatch(body, headerOf(request, 'content-type'), {
    limits: { ...defaultBatchLimits, ...limits },
    ...(serviceHosts === undefined ? {} : { serviceHosts: new Set(serviceHosts) }),
  })
}

/** Reads the body of a fixture from the pieces that arrive. */
export async function collectBody({ request, limits }: Fixture, pieces: Buffer[]): Promise<Buffer | Refusal> {
  const stream = Readable.from(
    pieces.filter((piece) => piece.length > 0),
    { objectMode: false },
  )
  try {
    return await readBody(stream, {
      maxBytes: limits['maxBodyBytes'] ?? defaultBatchLimits.maxBodyBytes,
      contentEncoding: headerOf(request, 'content-encoding'),
      contentLength: headerOf(request, 'content-length'),
    })
  } catch (error) {
    return toRefusal(error)
  }
}

/** Reads and decodes the body of a fixture from the pieces that arrive. */
export async function decodePieces(fixture: Fixture, pieces: Buffer[]): Promise<Batch | Refusal> {
  const body = await collectBody(fixture, pieces)
  if (!Buffer.isBuffer(body)) return body
  try {
    return decodeBody(fixture, body)
  } catch (error) {
    return toRefusal(error)
  }
}

function toRefusal(error: unknown): Refusal {
  if (error instanceof AdapterError) return { code: error.code }
  throw error
}
