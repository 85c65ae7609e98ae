import { createHmac, timingSafeEqual } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'

import { AdapterError } from '../errors.ts'
import type { ReadPosition } from './read-page.ts'

/** What a next link holds: all that is needed to go on, so that it works after a restart and on another instance. */
export interface ReadToken extends ReadPosition {
  /** The client's own query, raw. */
  readonly query: string
  /** What is left of `$top`. */
  readonly rest: number | undefined
}

const MAX_TOKEN_CHARACTERS = 65_536
const MAX_STATE_BYTES = 262_144
const SIGNATURE_BYTES = 16

/**
 * Writes a token that nobody can alter unseen: signed with the subscription key that V3 is called with, which every instance
 * knows and which other partners do not have.
 */
export function encodeReadToken(token: ReadToken, key: string): string {
  const { query, rest, window, link, offset } = token
  const state = deflateRawSync(JSON.stringify([query, rest ?? null, window, link ?? null, offset]))
  return Buffer.concat([sign(state, key), state]).toString('base64url')
}

/** Reads a token. Error: `ADP_QUERY` for one that was altered, cut, or made for another subscription key. */
export function decodeReadToken(text: string, key: string): ReadToken {
  const bytes = text.length > MAX_TOKEN_CHARACTERS ? Buffer.alloc(0) : Buffer.from(text, 'base64url')
  const signature = bytes.subarray(0, SIGNATURE_BYTES)
  const state = bytes.subarray(SIGNATURE_BYTES)
  // Base64 has spare bits at its end: only the text that was written counts.
  const whole = signature.length === SIGNATURE_BYTES && bytes.toString('base64url') === text
  if (!whole || !timingSafeEqual(signature, sign(state, key))) throw strange()
  const values: unknown = JSON.parse(inflateRawSync(state, { maxOutputLength: MAX_STATE_BYTES }).toString())
  const [query, rest, window, link, offset]: readonly unknown[] = Array.isArray(values)
    ? (values as unknown[])
    : []
  if (typeof query !== 'string' || typeof window !== 'number' || typeof offset !== 'number') throw strange()
  return {
    query,
    rest: typeof rest === 'number' ? rest : undefined,
    window,
    link: typeof link === 'string' ? link : undefined,
    offset,
  }
}

function sign(state: Buffer, key: string): Buffer {
  return createHmac('sha256', `markbridge next link ${key}`)
    .update(state)
    .digest()
    .subarray(0, SIGNATURE_BYTES)
}

function strange(): AdapterError {
  return new AdapterError('ADP_QUERY', 'The next link is not one of this adapter, or was altered.', {
    at: { path: '$skiptoken' },
  })
}
