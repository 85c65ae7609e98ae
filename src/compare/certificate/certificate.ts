import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto'

import { canonicalJson, type Json } from './canonical-json.ts'

/** What a certificate says; `certificateForm` and everything in here is under the digest. */
export interface CertificateBody {
  readonly issuedAt: string
  /** Version of this program. */
  readonly version: string
  readonly partner: string
  /** The end of the audit trail at that time; `mac` is that of its last entry, empty where there is none. */
  readonly audit: { readonly entries: number; readonly mac: string; readonly keyed: boolean }
  readonly stage: Json
  readonly advice: Json
  readonly history: readonly Json[]
}

/** A certificate as it is printed. */
export interface Certificate extends CertificateBody {
  readonly form: typeof certificateForm
  /** SHA-256 in hexadecimal over the canonical JSON (RFC 8785) of all but `digest` and `signature`. */
  readonly digest: string
  /** Null: it is not signed. Over `signedBytes`. */
  readonly signature: CertificateSignature | null
}

export interface CertificateSignature {
  readonly algorithm: 'Ed25519'
  /** SPKI in DER, base64. It says who signed only to those who know its owner. */
  readonly publicKey: string
  readonly value: string
}

export const certificateForm = 'markbridge-certificate-1'

/** Completes a certificate with its digest, and with a signature where there is a private key. */
export function createCertificate(body: CertificateBody, key: KeyObject | undefined): Certificate {
  const content = { form: certificateForm, ...body } as const
  const digest = digestOf(content)
  if (key === undefined) return { ...content, digest, signature: null }
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64')
  const value = sign(null, signedBytes(digest), key).toString('base64')
  return { ...content, digest, signature: { algorithm: 'Ed25519', publicKey, value } }
}

/** The digest of a certificate without its `digest` and `signature`. */
export function digestOf(content: object): string {
  // What is printed is what is digested: nothing in it but JSON.
  const json = JSON.parse(JSON.stringify(content)) as Json
  return createHash('sha256').update(canonicalJson(json)).digest('hex')
}

/** What is signed: no other text of this program, or of another one, is a certificate. */
export function signedBytes(digest: string): Buffer {
  return Buffer.from(`${certificateForm}\n${digest}\n`)
}
