import { createHmac, timingSafeEqual } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'

import { AdapterError } from '../errors.ts'
import type { ReadPosition } from './collect-page.ts'

/** The content of a next link: all that is needed to continue, so that it works after a restart and on another instance. */
export interface NextLink extends ReadPosition {
  /** The client's own query, raw. */
  readonly query: string
  /** The rest of `$top`. */
  readonly rest: number | undefined
}

/** Room for all rows of the largest page of V3 that is read; below the limit of a request's head. */
const MAX_TOKEN_CHARACTERS = 114_688
const MAX_STATE_BYTES = 262_144
const SIGNATURE_BYTES = 16
/** The query of V3's next link, as it goes into a request line. */
const QUERY = /^[\x21-\x7e]+$/
/** Base64url of what `writeGivenRows` writes. */
const GIVEN = /^[\w-]*$/

/** The secret and the owner that a link is signed for. */
interface TokenSigner {
  /** A secret of the adapter that all its instances know. */
  readonly secret: Uint8Array
  /** Whose link it is: another owner's token has another signature. */
  readonly owner: string
}

/**
 * Writes a token that cannot be altered or made up: no client knows the secret that signs it. Error: `ADP_QUERY` for a query that
 * leaves no room for it.
 */
export function encodeNextLink(token: NextLink, signer: TokenSigner): string {
  const { query, rest, window, link, given } = token
  const state = deflateRawSync(JSON.stringify([query, rest ?? null, window, link ?? null, given]))
  const text = Buffer.concat([sign(state, signer), state]).toString('base64url')
  if (text.length > MAX_TOKEN_CHARACTERS)
    throw new AdapterError(
      'ADP_QUERY',
      'The query is too long for a next link. Read with a shorter $filter.',
      {
        at: { path: '$filter' },
      },
    )
  return text
}

/**
 * Reads a token. Error: `ADP_QUERY` for one that was altered, cut, made up or given to another owner. Its content is checked as
 * well, in case that a secret became known.
 */
export function decodeNextLink(text: string, signer: TokenSigner): NextLink {
  const bytes = text.length > MAX_TOKEN_CHARACTERS ? Buffer.alloc(0) : Buffer.from(text, 'base64url')
  const signature = bytes.subarray(0, SIGNATURE_BYTES)
  const state = bytes.subarray(SIGNATURE_BYTES)
  // Base64 has spare bits at its end: only the text that was written counts.
  const whole = signature.length === SIGNATURE_BYTES && bytes.toString('base64url') === text
  if (!whole || !timingSafeEqual(signature, sign(state, signer))) throw invalidNextLink()
  const [query, rest, window, link, given] = readState(state)
  if (typeof query !== 'string' || !isCount(window)) throw invalidNextLink()
  if (typeof given !== 'string' || !GIVEN.test(given)) throw invalidNextLink()
  if (rest !== null && !isCount(rest)) throw invalidNextLink()
  if (link !== null && !(typeof link === 'string' && QUERY.test(link))) throw invalidNextLink()
  return { query, rest: rest ?? undefined, window, link: link ?? undefined, given }
}

function readState(state: Buffer): readonly unknown[] {
  try {
    const json = inflateRawSync(state, { maxOutputLength: MAX_STATE_BYTES }).toString()
    const values: unknown = JSON.parse(json)
    return Array.isArray(values) ? (values as unknown[]) : []
  } catch {
    throw invalidNextLink()
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function sign(state: Buffer, { secret, owner }: TokenSigner): Buffer {
  const key = createHmac('sha256', secret).update('markbridge next link ').update(owner).digest()
  return createHmac('sha256', key).update(state).digest().subarray(0, SIGNATURE_BYTES)
}

/** The error of a token that cannot be used. */
export function invalidNextLink(): AdapterError {
  return new AdapterError('ADP_QUERY', 'The next link is not one of this adapter, or was altered.', {
    at: { path: '$skiptoken' },
  })
}
