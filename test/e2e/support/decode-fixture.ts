import { Readable } from 'node:stream'

import { parseConfig } from '../../../src/config/index.ts'
import { AdapterError } from '../../../src/errors.ts'
import { readBody } from '../../../src/http/body.ts'
import { type Batch, decodeBatch, type DecodeOptions, defaultBatchLimits } from '../../../src/v2/index.ts'
import type { Fixture } from './fixture.ts'
import { headerOf } from './raw-message.ts'

export interface Refusal {
  readonly code: string
}

/** A cache of decode options, because some fixtures are decoded a hundred thousand times. */
const optionsOf = new WeakMap<Fixture, DecodeOptions>()

function readOptions({ limits, partner }: Fixture): DecodeOptions {
  const { serviceHosts } = parseConfig({
    upstreams: { v3: { baseUrl: 'http://v3.example' } },
    partners: [{ id: 'partner', match: { any: true }, ...partner }],
  }).partners[0] ?? { serviceHosts: undefined }
  return {
    limits: { ...defaultBatchLimits, ...limits },
    ...(serviceHosts === undefined ? {} : { serviceHosts: new Set(serviceHosts) }),
  }
}

/** Decodes the body of a fixture. Throws an `AdapterError` if the body is rejected. */
export function decodeBody(fixture: Fixture, body: Buffer): Batch {
  const options = optionsOf.get(fixture) ?? readOptions(fixture)
  optionsOf.set(fixture, options)
  return decodeBatch(body, headerOf(fixture.request, 'content-type'), options)
}

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
