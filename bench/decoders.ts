import { decodeBatch } from '../src/v2/index.ts'
import { createCapDecoder } from './peer-cap.ts'
import { createDicerDecoder } from './peer-dicer.ts'
import type { PostedRecord } from './posted-records.ts'
import { splitRecords } from './split-records.ts'

/** One way to read a legacy batch. */
export interface Decoder {
  readonly name: string
  /** Decodes a body to the decoder's own result. This call is timed. */
  decode(bytes: Buffer, contentType: string): unknown
  /** The decoder's result in the form that is compared; not timed. */
  toRecords(result: unknown): PostedRecord[]
}

export const decoderNames = ['markbridge', '@sap/cds', 'dicer', 'indexOf'] as const
export type DecoderName = (typeof decoderNames)[number]

/** Loads one decoder alone, so that its memory can be measured alone. */
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
  // The result goes through the clock as unknown and comes back to the same decoder.
  return { name, decode, toRecords: (result) => toRecords(result as Result) }
}
