import { createPublicKey, type KeyObject, verify } from 'node:crypto'

import { AdapterError } from '../../errors.ts'
import { type Certificate, certificateForm, digestOf, signedBytes } from './certificate.ts'

/** A finding about a certificate. */
export interface Finding {
  readonly check: 'digest' | 'signature' | 'audit'
  /** `unknown`: it cannot be said. */
  readonly result: 'holds' | 'fails' | 'unknown'
  readonly what: string
}

/** What `verifyCertificate` needs of a certificate that was read. */
export type ReadCertificate = Pick<Certificate, 'partner' | 'issuedAt' | 'audit' | 'digest' | 'signature'> & {
  /** All but digest and signature. */
  readonly content: object
  /** False: the text has members twice, or numbers that are not what they seem. */
  readonly isPlain: boolean
}

/** Reads a certificate. Error: `ADP_USAGE` for a text that is none. */
export function readCertificate(text: string): ReadCertificate {
  const { digest, signature, ...content } = membersOf(parse(text))
  const { form, partner, issuedAt, audit } = content
  const { entries, mac, keyed } = membersOf(audit)
  if (form !== certificateForm) throw notOne(`its form is not ${certificateForm}`)
  if (typeof partner !== 'string' || typeof issuedAt !== 'string' || typeof digest !== 'string')
    throw notOne('a member is missing')
  if (!Number.isSafeInteger(entries) || typeof mac !== 'string' || typeof keyed !== 'boolean')
    throw notOne('its audit head is missing')
  return {
    content,
    partner,
    issuedAt,
    audit: { entries: Number(entries), mac, keyed },
    digest,
    signature: signature === null ? null : signatureOf(signature),
    isPlain: withoutSpace(text) === JSON.stringify(JSON.parse(text)),
  }
}

/** Checks the digest and the signature; `publicKey` is the key that has to have signed. */
export function verifyContent(
  { content, digest, signature, isPlain }: ReadCertificate,
  publicKey: KeyObject | undefined,
): readonly Finding[] {
  const isWhole = isPlain && digestOf(content) === digest
  const digestFinding: Finding = isWhole
    ? { check: 'digest', result: 'holds', what: 'The content is as it was certified.' }
    : { check: 'digest', result: 'fails', what: 'The content was changed since it was certified.' }
  const signed = verifySignature(digest, signature, publicKey)
  if (isWhole || signed.result !== 'holds') return [digestFinding, signed]
  return [digestFinding, { ...signed, what: 'This key has signed the digest, not the content as it is now.' }]
}

function verifySignature(
  digest: string,
  signature: Certificate['signature'],
  publicKey: KeyObject | undefined,
): Finding {
  const found = (result: Finding['result'], what: string): Finding => ({ check: 'signature', result, what })
  if (signature === null)
    return publicKey === undefined
      ? found('unknown', 'It is not signed: anyone could have made it.')
      : found('fails', 'It is not signed.')
  const own = keyOf(signature.publicKey)
  const key = publicKey ?? own
  const isSigned =
    key?.asymmetricKeyType === 'ed25519' &&
    verify(null, signedBytes(digest), key, Buffer.from(signature.value, 'base64'))
  if (!isSigned)
    return found(
      'fails',
      publicKey === undefined ? 'The signature is wrong.' : 'It was not signed with this key.',
    )
  return publicKey === undefined
    ? found('unknown', 'It is signed, with a key that nothing here vouches for: give it with --public-key.')
    : found('holds', 'It was signed with this key.')
}

function keyOf(spki: string): KeyObject | undefined {
  try {
    return createPublicKey({ key: Buffer.from(spki, 'base64'), type: 'spki', format: 'der' })
  } catch {
    return undefined
  }
}

function signatureOf(value: unknown): Certificate['signature'] {
  const { algorithm, publicKey, value: bytes } = membersOf(value)
  if (algorithm !== 'Ed25519' || typeof publicKey !== 'string' || typeof bytes !== 'string')
    throw notOne('its signature has another form')
  return { algorithm, publicKey, value: bytes }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw notOne('it is not JSON')
  }
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

/** JSON without white space outside of texts: a member that is there twice, which readers take differently, makes it another text. */
function withoutSpace(text: string): string {
  return text.replaceAll(/"(?:[^"\\]|\\.)*"|\s+/g, (found) => (found.startsWith('"') ? found : ''))
}

const notOne = (why: string): AdapterError =>
  new AdapterError('ADP_USAGE', `This is not a certificate: ${why}.`)
