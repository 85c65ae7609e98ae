import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'

import * as z from 'zod'

import type { Config } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import type { OpenedRolloutStore } from '../../rollout/store/rollout-store.ts'
import { type Answer, formatCounted, formatGivenText, formatHints } from '../text.ts'
import { readGivenFile, readKeySource, writeResult } from '../files.ts'
import type { Target } from '../options.ts'
import { loadTarget } from '../target.ts'
import { version } from '../version.ts'
import { fullAdviceToJson, giveAdvice } from './advice.ts'
import { readStore } from './open-store.ts'
import { entryToJson, stageToJson, viewKnown } from './stage-view.ts'

const FORM = 'markbridge-certificate-1'

/** The members that are checked. `stage`, `advice` and `history` are copied unchanged. */
const form = z.object({
  form: z.literal(FORM),
  partner: z.string(),
  issuedAt: z.string(),
  /** The last entry of the audit trail when the certificate was issued; `mac` is empty if the trail had no entry. */
  audit: z.object({ entries: z.int(), mac: z.string(), keyed: z.boolean() }),
  /** The SHA-256 in hexadecimal of the JSON of all members but `digest` and `signature`, without white space. */
  digest: z.string(),
  signature: z
    .object({
      algorithm: z.literal('Ed25519'),
      /** The SPKI in DER, base64. It proves who signed only to a reader who knows the owner of the key. */
      publicKey: z.string(),
      value: z.string(),
    })
    .nullable(),
})
type Certificate = z.infer<typeof form>

export interface CertifyOptions extends Target {
  readonly out?: string
  readonly force?: boolean
  readonly signingKey?: string
}

/**
 * Writes the stage of a partner, the advice on its next step and its history as one JSON document. If the audit trail is broken, the exit
 * status is 1 and nothing is written.
 */
export async function certifyPartner(partner: string, options: CertifyOptions): Promise<number> {
  const config = await loadTarget(options)
  const key = options.signingKey === undefined ? undefined : await readSigningKey(options.signingKey)
  const content = await readStore(config, (store) => describePartner(partner, config, store))
  if (content === undefined) {
    console.error(
      formatHints(
        'markbridge: the audit trail is broken, so no certificate was written. Run markbridge rollout verify to see where.',
        options,
      ),
    )
    return 1
  }
  const digest = digestOf(content)
  const signature = key && {
    algorithm: 'Ed25519',
    publicKey: createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64'),
    value: sign(null, signedBytes(digest), key).toString('base64'),
  }
  const text = JSON.stringify({ ...content, digest, signature: signature ?? null }, null, 2)
  if (options.out === undefined) console.log(text)
  else {
    await writeResult(options.out, `${text}\n`, options.force)
    console.error(`markbridge: the certificate is in ${options.out}`)
  }
  return 0
}

/** Returns `undefined` if the audit trail is broken. */
async function describePartner(
  partner: string,
  config: Config,
  store: OpenedRolloutStore,
): Promise<object | undefined> {
  const snapshot = await store.snapshot()
  const view = viewKnown(partner, config, snapshot)
  const trail = await store.verify()
  if (trail.broken !== undefined) return undefined
  const advice = await giveAdvice(view, config, snapshot, store)
  return {
    form: FORM,
    issuedAt: new Date(snapshot.nowMs).toISOString(),
    version,
    partner,
    audit: { entries: trail.entries, mac: trail.head, keyed: trail.keyed },
    stage: stageToJson(view),
    advice: fullAdviceToJson(partner, advice),
    history: (await store.history({ partner })).map((entry) => entryToJson(entry)),
  }
}

const digestOf = (content: object): string =>
  createHash('sha256').update(JSON.stringify(content)).digest('hex')

/** Adds a prefix, so that a signature of another kind of text cannot be taken for one of a certificate. */
const signedBytes = (digest: string): Buffer => Buffer.from(`${FORM}\n${digest}\n`)

export interface VerifyOptions extends Target {
  readonly publicKey?: string
  readonly offline?: boolean
}

interface Finding {
  readonly check: 'digest' | 'signature' | 'audit'
  /** `unknown` if the check cannot be decided. */
  readonly result: 'holds' | 'fails' | 'unknown'
  readonly what: string
}

const words = { holds: 'holds', fails: 'FAILS', unknown: 'not known' } as const

/**
 * Checks the digest and the signature, and that the audit trail is intact and still has the certified entries. The exit status is 1 if one
 * of the checks fails. Throws `ADP_USAGE` if the file is not a certificate.
 */
export async function verifyCertificate(file: string, options: VerifyOptions): Promise<Answer> {
  const { certificate, isWhole } = readCertificate((await readGivenFile(file)).toString('utf8'))
  const publicKey = options.publicKey === undefined ? undefined : await readPublicKey(options.publicKey)
  const findings = [
    ...verifyContent(certificate, isWhole, publicKey),
    options.offline === true
      ? auditNotRead
      : await readStore(await loadTarget(options), (store) => verifyHead(certificate, store)),
  ]
  const { partner, issuedAt } = certificate
  const isValid = findings.every(({ result }) => result !== 'fails')
  const lines = findings.map(({ check, result, what }) => `  ${check}: ${words[result]}. ${what}`)
  return {
    document: { partner, issuedAt, valid: isValid, findings },
    text: () =>
      [`Certificate of ${formatGivenText(partner)}, ${formatGivenText(issuedAt)}:`, ...lines].join('\n'),
    status: isValid ? 0 : 1,
  }
}

const auditNotRead: Finding = { check: 'audit', result: 'unknown', what: 'The journal was not read.' }

/** Reads a certificate, in which a duplicate member counts as a change. Throws `ADP_USAGE` if the text is not a certificate. */
function readCertificate(text: string): { readonly certificate: Certificate; readonly isWhole: boolean } {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw notACertificate('the file is not JSON')
  }
  const read = form.safeParse(json)
  if (!read.success) {
    const at = read.error.issues[0]?.path.join('.') ?? ''
    throw notACertificate(
      at === 'form' || at === ''
        ? `the form is not ${FORM}`
        : `the member ${at} is missing or has another form`,
    )
  }
  // The order of the members stays, since the digest is over the text.
  const { digest, signature, ...content } = json as Certificate
  const withoutSpace = text.replaceAll(/("(?:[^"\\]|\\.)*")|\s+/g, '$1')
  const isWhole = withoutSpace === JSON.stringify(json) && digestOf(content) === digest
  return { certificate: { ...content, digest, signature }, isWhole }
}

const notACertificate = (why: string): AdapterError =>
  new AdapterError('ADP_USAGE', `This is not a certificate: ${why}.`)

/** Checks the digest and the signature. `publicKey` is the key that must have signed, or `undefined` if the operator named none. */
function verifyContent(
  { digest, signature }: Certificate,
  isWhole: boolean,
  publicKey: KeyObject | undefined,
): readonly Finding[] {
  const digestFinding: Finding = isWhole
    ? { check: 'digest', result: 'holds', what: 'The content has not changed since it was certified.' }
    : { check: 'digest', result: 'fails', what: 'The content was changed since it was certified.' }
  const signed = verifySignature(digest, signature, publicKey)
  if (isWhole || signed.result !== 'holds') return [digestFinding, signed]
  return [
    digestFinding,
    { ...signed, what: 'The key signed the digest, but the content does not match the digest.' },
  ]
}

function verifySignature(
  digest: string,
  signature: Certificate['signature'],
  publicKey: KeyObject | undefined,
): Finding {
  const found = (result: Finding['result'], what: string): Finding => ({ check: 'signature', result, what })
  if (signature === null)
    return publicKey === undefined
      ? found('unknown', 'The certificate is not signed, so anyone could have made it.')
      : found('fails', 'The certificate is not signed.')
  const key = publicKey ?? keyOf(signature.publicKey)
  const isSigned =
    key?.asymmetricKeyType === 'ed25519' &&
    verify(null, signedBytes(digest), key, Buffer.from(signature.value, 'base64'))
  if (publicKey === undefined)
    return isSigned
      ? found(
          'unknown',
          'The certificate is signed, but the key is not verified. Name the key that you trust with --public-key.',
        )
      : found('fails', 'The signature is wrong.')
  return isSigned
    ? found('holds', 'The certificate was signed with this key.')
    : found('fails', 'The certificate was not signed with this key.')
}

function keyOf(spki: string): KeyObject | undefined {
  try {
    return createPublicKey({ key: Buffer.from(spki, 'base64'), type: 'spki', format: 'der' })
  } catch {
    return undefined
  }
}

/** Checks that the audit trail still has the entry that was its last one when the certificate was issued. */
async function verifyHead({ audit }: Certificate, store: OpenedRolloutStore): Promise<Finding> {
  const found = (result: Finding['result'], what: string): Finding => ({ check: 'audit', result, what })
  const { broken, entries, keyed } = await store.verify()
  if (broken !== undefined)
    return found('fails', `The audit trail is broken at entry ${broken.entry}: ${broken.what}.`)
  if (audit.entries > entries)
    return found(
      'fails',
      `The audit trail has ${entries} entries, but had ${audit.entries} when the certificate was issued.`,
    )
  const mac = audit.entries === 0 ? '' : await store.macOf(audit.entries)
  if (mac !== audit.mac)
    return found('fails', `Entry ${audit.entries} of the audit trail differs from the certified entry.`)
  const since = entries - audit.entries
  const unkeyed = keyed
    ? ''
    : ' The trail began without journal.keys, so anyone who can write to its database can forge the trail.'
  return found(
    'holds',
    `The audit trail contains the certified entries, and ${formatCounted(since, 'later entry', 'later entries')}.${unkeyed}`,
  )
}

/** Reads Ed25519 in PEM from `env:NAME` or `file:path`. Throws `ADP_USAGE` without quoting the key. */
async function readSigningKey(source: string): Promise<KeyObject> {
  const text = await readKeySource(source, '--signing-key')
  // A variable that was set in a shell often has its line ends as \n.
  return expectEd25519(
    () => createPrivateKey(text.replaceAll('\\n', '\n')),
    `${source} is not a private key in PEM`,
  )
}

/** Reads Ed25519 in PEM from a file. Throws `ADP_USAGE` if the file is no such key. */
async function readPublicKey(path: string): Promise<KeyObject> {
  const text = await readGivenFile(path)
  return expectEd25519(() => createPublicKey(text), `${path} is not a public key in PEM`)
}

function expectEd25519(read: () => KeyObject, otherwise: string): KeyObject {
  let key: KeyObject
  try {
    key = read()
  } catch {
    // The message of the cause may quote the key.
    throw unusableKey(otherwise)
  }
  if (key.asymmetricKeyType !== 'ed25519') throw unusableKey(`${otherwise} of the type Ed25519`)
  return key
}

const unusableKey = (why: string): AdapterError =>
  new AdapterError('ADP_USAGE', `This key cannot be used: ${why}.`)
