import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'

import * as z from 'zod'

import { AdapterError } from '../errors.ts'

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

/** A finding about a certificate. */
export interface Finding {
  readonly check: 'digest' | 'signature' | 'audit'
  /** `unknown`: it cannot be said. */
  readonly result: 'holds' | 'fails' | 'unknown'
  readonly what: string
}

const FORM = 'markbridge-certificate-1'

const form = z.object({
  form: z.literal(FORM),
  partner: z.string(),
  issuedAt: z.string(),
  audit: z.object({ entries: z.int(), mac: z.string(), keyed: z.boolean() }),
  digest: z.string(),
  signature: z
    .object({
      algorithm: z.literal('Ed25519'),
      /** SPKI in DER, base64. It says who signed only to those who know its owner. */
      publicKey: z.string(),
      value: z.string(),
    })
    .nullable(),
})
type Signature = NonNullable<z.infer<typeof form>['signature']>

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
  const read = form.safeParse(json)
  if (!read.success) {
    const at = read.error.issues[0]?.path.join('.') ?? ''
    throw notOne(
      at === 'form' ? `its form is not ${FORM}` : `its member ${at} is missing or has another form`,
    )
  }
  const { partner, issuedAt, audit, digest, signature } = read.data
  // As it was written, in its order: the digest is over the text.
  const content = Object.fromEntries(
    Object.entries(json).filter(([name]) => name !== 'digest' && name !== 'signature'),
  )
  // A member that is there twice, which readers take differently, makes it another text.
  const withoutSpace = text.replaceAll(/("(?:[^"\\]|\\.)*")|\s+/g, '$1')
  const isPlain = withoutSpace === JSON.stringify(json)
  return { content, partner, issuedAt, audit, digest, signature, isPlain }
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

function parse(text: string): object {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw notOne('it is not JSON')
  }
  if (typeof json !== 'object' || json === null) throw notOne(`its form is not ${FORM}`)
  return json
}

const notOne = (why: string): AdapterError =>
  new AdapterError('ADP_USAGE', `This is not a certificate: ${why}.`)
