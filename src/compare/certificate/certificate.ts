import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'

import { AdapterError } from '../../errors.ts'

/** What a certificate says of a partner; all values are plain JSON. */
export interface CertificateBody {
  readonly issuedAt: string
  /** Version of this program. */
  readonly version: string
  readonly partner: string
  /** The end of the audit trail at that time; `mac` is that of its last entry, empty where there is none. */
  readonly audit: { readonly entries: number; readonly mac: string; readonly keyed: boolean }
  readonly stage: object
  readonly advice: object
  readonly history: readonly object[]
}

/** A certificate that was read. */
export interface Certificate extends Pick<CertificateBody, 'partner' | 'issuedAt' | 'audit'> {
  /** All but digest and signature. */
  readonly content: object
  readonly digest: string
  readonly signature: Signature | null
  /** False: the text has members twice, or numbers that are not what they seem. */
  readonly isPlain: boolean
}

interface Signature {
  /** SPKI in DER, base64. It says who signed only to those who know its owner. */
  readonly publicKey: string
  readonly value: string
}

/** A finding about a certificate. */
export interface Finding {
  readonly check: 'digest' | 'signature' | 'audit'
  /** `unknown`: it cannot be said. */
  readonly result: 'holds' | 'fails' | 'unknown'
  readonly what: string
}

const FORM = 'markbridge-certificate-1'

/**
 * The text of a certificate, with its digest (SHA-256 in hexadecimal over the JSON of all but `digest` and `signature`, without white space), and
 * signed where there is a private key, Ed25519.
 */
export function formatCertificate(body: CertificateBody, key: KeyObject | undefined): string {
  const content = { form: FORM, ...body }
  const digest = digestOf(content)
  const signature = key && {
    algorithm: 'Ed25519',
    publicKey: createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64'),
    value: sign(null, signedBytes(digest), key).toString('base64'),
  }
  return JSON.stringify({ ...content, digest, signature: signature ?? null }, null, 2)
}

const digestOf = (content: object): string =>
  createHash('sha256').update(JSON.stringify(content)).digest('hex')

/** What is signed: no other text of this program, or of another one, is a certificate. */
const signedBytes = (digest: string): Buffer => Buffer.from(`${FORM}\n${digest}\n`)

/** Reads a certificate. Error: `ADP_USAGE` for a text that is none. */
export function readCertificate(text: string): Certificate {
  const json = parse(text)
  const { digest, signature, ...content } = membersOf(json)
  const { form, partner, issuedAt, audit } = content
  const { entries, mac, keyed } = membersOf(audit)
  if (form !== FORM) throw notOne(`its form is not ${FORM}`)
  if (typeof partner !== 'string' || typeof issuedAt !== 'string' || typeof digest !== 'string')
    throw notOne('a member is missing')
  if (!Number.isSafeInteger(entries) || typeof mac !== 'string' || typeof keyed !== 'boolean')
    throw notOne('its audit head is missing')
  // A member that is there twice, which readers take differently, makes it another text.
  const withoutSpace = text.replaceAll(/("(?:[^"\\]|\\.)*")|\s+/g, '$1')
  return {
    content,
    partner,
    issuedAt,
    audit: { entries: Number(entries), mac, keyed },
    digest,
    signature: signature === null ? null : signatureOf(signature),
    isPlain: withoutSpace === JSON.stringify(json),
  }
}

/** Checks the digest and the signature; `publicKey` is the key that has to have signed. */
export function verifyContent(
  { content, digest, signature, isPlain }: Certificate,
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
  signature: Signature | null,
  publicKey: KeyObject | undefined,
): Finding {
  const found = (result: Finding['result'], what: string): Finding => ({ check: 'signature', result, what })
  if (signature === null)
    return publicKey === undefined
      ? found('unknown', 'It is not signed: anyone could have made it.')
      : found('fails', 'It is not signed.')
  const key = publicKey ?? keyOf(signature.publicKey)
  const isSigned =
    key?.asymmetricKeyType === 'ed25519' &&
    verify(null, signedBytes(digest), key, Buffer.from(signature.value, 'base64'))
  if (publicKey === undefined)
    return isSigned
      ? found('unknown', 'It is signed, with a key that nothing here vouches for: give it with --public-key.')
      : found('fails', 'The signature is wrong.')
  return isSigned
    ? found('holds', 'It was signed with this key.')
    : found('fails', 'It was not signed with this key.')
}

function keyOf(spki: string): KeyObject | undefined {
  try {
    return createPublicKey({ key: Buffer.from(spki, 'base64'), type: 'spki', format: 'der' })
  } catch {
    return undefined
  }
}

function signatureOf(value: unknown): Signature {
  const { algorithm, publicKey, value: bytes } = membersOf(value)
  if (algorithm !== 'Ed25519' || typeof publicKey !== 'string' || typeof bytes !== 'string')
    throw notOne('its signature has another form')
  return { publicKey, value: bytes }
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

const notOne = (why: string): AdapterError =>
  new AdapterError('ADP_USAGE', `This is not a certificate: ${why}.`)
