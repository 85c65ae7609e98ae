import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'

import { JsonReader } from '../v2/record/json-reader.ts'
import type { V3Credentials } from '../v3/index.ts'

export interface OwnerRules {
  readonly id: string
  readonly match: object
  readonly identityClaims: readonly string[]
  readonly unit: { readonly claim: string }
  readonly tokens: unknown
}

/** A client as its credentials describe it. Nothing is verified, because the identity only separates clients and grants no access. */
export interface ClientIdentity {
  /** The owner of batches, stored replies and open records (product contract 3), as a SHA-256 in base64url. */
  readonly owner: string
  /** The SHA-256 of the subscription key and the token, in base64url. */
  readonly credentialsHash: string
  /**
   * False if no claim of the token names the client. The token then has a share of its own, and recovery uses the token only for batches
   * that were sent with it.
   */
  readonly isNamed: boolean
  /** The school that the token names, as text, or `undefined` if the token names no school. */
  readonly school: string | undefined
  /** The claim `exp` in milliseconds since the epoch, or `undefined` if the token has no such claim. */
  readonly expiresMs: number | undefined
}

const MAX_TOKEN_LENGTH = 65_536

export function identify(
  { id, match, identityClaims, tokens, unit }: OwnerRules,
  { authorization, subscriptionKey }: V3Credentials,
): ClientIdentity {
  const credentialsHash = digest(`${subscriptionKey}\n${authorization}`)
  const claims = readClaims(authorization)
  const school = toSchool(claims.get(unit.claim))
  // All clients of a partner with tokens of the adapter have one owner, because V3 sees them as one client.
  if (tokens !== undefined)
    return { owner: ownerOf([id]), credentialsHash, isNamed: true, school, expiresMs: undefined }
  const keyPart = isKeyed(match) ? '' : digest(subscriptionKey)
  const client = CLIENT_CLAIMS.map((name) => claims.get(name)).find(isTelling)
  const texts = identityClaims.map((name) => (name === CLIENT_CLAIMS[0] ? client : claims.get(name)))
  const isConfigured = texts.some((text, index) => identityClaims[index] !== 'iss' && isTelling(text))
  if (!isConfigured && client !== undefined) texts.push(client)
  const exp = Number(claims.get('exp'))
  return {
    owner: ownerOf([id, keyPart], texts),
    credentialsHash,
    isNamed: isConfigured || client !== undefined,
    school,
    expiresMs: Number.isFinite(exp) ? exp * 1_000 : undefined,
  }
}

/**
 * The claims that may name the client of an issuer. The first of them that a token has counts as its `client_id`. The name is `client_id`
 * in RFC 9068 2.2, `azp` in OpenID Connect Core 2, and `appid` in older Microsoft tokens. `sub` counts only if the token names no
 * application, because several teachers of a school may resend one register.
 */
const CLIENT_CLAIMS = ['client_id', 'azp', 'appid', 'sub'] as const

/** Returns true for a claim with a value. An issuer may give the same empty claim to all its clients. */
function isTelling(text: string | undefined): text is string {
  return text !== undefined && !/^(?:null|""|\[\]|\{\s*\})$/.test(text)
}

/** Returns true if the partner is recognised by its subscription keys. The key then does not identify the owner, because it may change. */
const isKeyed = (match: object): boolean => 'subscriptionKeySha256' in match
const digest = (text: string): string => hash('sha256', text, 'base64url')
/** Hashes the parts and claims of an owner. Claims stay JSON text, because `JSON.parse` may turn two large numbers into the same number. */
function ownerOf(parts: readonly string[], claims?: readonly (string | undefined)[]): string {
  const texts = parts.map((part) => JSON.stringify(part))
  if (claims !== undefined) texts.push(`[${claims.map((claim) => claim ?? 'null').join()}]`)
  return digest(`[${texts.join()}]`)
}

const noClaims: ReadonlyMap<string, string> = new Map()
const OBJECT = { open: 0x7b, close: 0x7d }
const LIST = { open: 0x5b, close: 0x5d }
const COLON = 0x3a
const COMMA = 0x2c
/** Limits that no token reaches, because the length of a token is already limited. */
const LIMITS = { maxMembers: MAX_TOKEN_LENGTH, maxEscapes: MAX_TOKEN_LENGTH }

/** Returns the JSON text of each claim of a JWT. Returns no claims for a token that is opaque or broken or repeats a name (RFC 7519 4). */
function readClaims(authorization: string): ReadonlyMap<string, string> {
  const token = authorization.replace(/^bearer +/i, '').trimEnd()
  const parts = token.length > MAX_TOKEN_LENGTH ? [] : token.split('.', 4)
  const bytes = Buffer.from(parts[1] ?? '', 'base64url')
  if (parts.length !== 3 || !isUtf8(bytes)) return noClaims
  const reader = new JsonReader(bytes.toString(), LIMITS)
  const claims = new Map<string, string>()
  const isRead = readItems(reader, OBJECT, () => {
    const name = reader.readString()
    const text = name === undefined || !reader.take(COLON) ? undefined : readClaim(reader)
    if (name === undefined || text === undefined || claims.has(name)) return false
    claims.set(name, text)
    return true
  })
  return isRead && Number.isNaN(reader.peek()) ? claims : noClaims
}

/** Reads the value of a claim as JSON text. Sorts a list, because tokens of one client may have its elements in different orders. */
function readClaim(reader: JsonReader): string | undefined {
  if (reader.peek() !== LIST.open) return readText(reader)
  const elements: string[] = []
  const isRead = readItems(reader, LIST, () => {
    const text = readText(reader)
    elements.push(text ?? '')
    return text !== undefined
  })
  return isRead ? JSON.stringify(elements.sort()) : undefined
}

/** Reads a value as JSON text. Resolves the escapes of a string, because a renewed token may use other escapes. */
function readText(reader: JsonReader): string | undefined {
  if (!reader.atString()) return reader.readRaw()
  const text = reader.readString()
  return text === undefined ? undefined : JSON.stringify(text)
}

/** Calls `readItem` for each member of an object or element of a list. Returns false if the value is broken or has another type. */
function readItems(
  reader: JsonReader,
  { open, close }: { readonly open: number; readonly close: number },
  readItem: () => boolean,
): boolean {
  if (!reader.take(open)) return false
  if (reader.take(close)) return true
  while (readItem()) {
    if (reader.take(close)) return true
    if (!reader.take(COMMA)) return false
  }
  return false
}

/** Returns the school that a claim names, or `undefined` for an empty claim or an object. A header may then name the school. */
function toSchool(text: string | undefined): string | undefined {
  if (text === undefined || !isTelling(text) || text.startsWith('{')) return undefined
  return /^["[]/.test(text) ? [JSON.parse(text)].flat().join(' ') : text
}
