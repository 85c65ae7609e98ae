import { decodeBatch } from '../src/v2/index.ts'
import { createCapDecoder } from './peer-cap.ts'
import { createDicerDecoder } from './peer-dicer.ts'
import type { PostedRecord } from './posted-records.ts'
import { splitRecords } from './split-records.ts'

/** A decoder of V2 batches that the benchmark measures. */
export interface Decoder {
  readonly name: string
  /** Decodes a body. The form of the result depends on the decoder. The benchmark measures this call. */
  decode(bytes: Buffer, contentType: string): unknown
  /** Converts a result of `decode` to the common form. The benchmark does not measure this call. */
  toRecords(result: unknown): PostedRecord[]
}

export const decoderNames = ['markbridge', '@sap/cds', 'dicer', 'indexOf'] as const
export type DecoderName = (typeof decoderNames)[number]

/** Loads only the named decoder, so that the memory of other decoders does not count. */
export function createDecoder(name: DecoderName): Decoder {
  switch (name) {
    case 'markbridge':
      return define(
        name,
        (bytes, contentType) => decodeBatch(bytes, contentType),
        (batch) => batch.parts.map(({ contentId, record }) => ({ contentId, body: record })),
      )
    case '@sap/cds':
      return define(name, createCapDecoder(), (requests) =>
        requests.map((request) => ({ contentId: request.content_id, body: request.body })),
      )
    case 'dicer':
      return define(name, createDicerDecoder(), (parts) =>
        parts.map(({ mime, body }) => ({ contentId: mime['content-id']?.[0], body })),
      )
    case 'indexOf':
      return define(name, splitRecords, (records) => records)
  }
}

function define<Result>(
  name: string,
  decode: (bytes: Buffer, contentType: string) => Result | Promise<Result>,
  toRecords: (result: Result) => PostedRecord[],
): Decoder {
  // The cast is safe, because each decoder gets only results of its own `decode`.
  return { name, decode, toRecords: (result) => toRecords(result as Result) }
}
