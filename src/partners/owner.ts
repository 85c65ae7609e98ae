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

/** A client as its credentials describe it. Nothing is verified: the identity separates clients and grants no access. */
export interface ClientIdentity {
  /** Base64url of a SHA-256: the owner of batches, stored answers and open records (product contract 3). */
  readonly owner: string
  /** Base64url of the SHA-256 of the subscription key and the token. */
  readonly credentialsHash: string
  /** False if no claim distinguishes clients of one issuer. The token then has its own share and finishes only its own records. */
  readonly isNamed: boolean
  /** The school that the token names, as text, or `undefined` if it names none. */
  readonly school: string | undefined
  /** The `exp` claim in milliseconds since the epoch, or `undefined` if the token has none. */
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
  // If the adapter uses its own tokens, V3 knows only the partner as a client.
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
 * The claims that name the client of an issuer. The first one in a token counts as its `client_id`. RFC 9068 2.2 has `client_id`, OpenID
 * Connect Core 2 `azp`, and older Microsoft tokens `appid`. `sub` counts only if no application is named, because several teachers of a
 * school may resend one register.
 */
const CLIENT_CLAIMS = ['client_id', 'azp', 'appid', 'sub'] as const

/** Returns true for a claim that is not empty. An issuer may give all its clients an empty claim. */
function isTelling(text: string | undefined): text is string {
  return text !== undefined && !/^(?:null|""|\[\]|\{\s*\})$/.test(text)
}

/** Returns true if a partner is matched by its keys, which then all belong to one client. */
const isKeyed = (match: object): boolean => 'subscriptionKeySha256' in match
const digest = (text: string): string => hash('sha256', text, 'base64url')
/** Hashes texts that are JSON already, because `JSON.parse` may make different numbers equal. */
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
/** The length of a token bounds both. */
const LIMITS = { maxMembers: MAX_TOKEN_LENGTH, maxEscapes: MAX_TOKEN_LENGTH }

/** Returns the JSON text of each claim of a JWT. A token that is opaque, broken or repeats a name (RFC 7519 4) has no claims. */
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

/** Sorts a list, because the order of its elements may differ between tokens. */
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

/** Resolves escapes, because a renewed token may use different ones. */
function readText(reader: JsonReader): string | undefined {
  if (!reader.atString()) return reader.readRaw()
  const text = reader.readString()
  return text === undefined ? undefined : JSON.stringify(text)
}

/** Calls `readItem` for each member or element. Returns false if the value is broken or neither an object nor a list. */
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

/** Returns the school that a claim names, or `undefined` for an empty claim or an object. The partner's header may name a school instead. */
function toSchool(text: string | undefined): string | undefined {
  if (text === undefined || !isTelling(text) || text.startsWith('{')) return undefined
  return /^["[]/.test(text) ? [JSON.parse(text)].flat().join(' ') : text
}
