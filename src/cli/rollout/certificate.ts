import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { writeFile } from 'node:fs/promises'

import {
  type Certificate,
  type CertificateBody,
  type Finding,
  formatCertificate,
  readCertificate,
  verifyContent,
} from '../../rollout/certificate.ts'
import type { Config } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import type { OpenedRolloutStore } from '../../rollout/store/rollout-store.ts'
import { readKeySource } from '../key-source.ts'
import { readGivenFile } from '../recordings/read-recordings.ts'
import { version } from '../version.ts'
import { fullAdviceToJson, giveAdvice } from './advice.ts'
import { readStore } from './open-store.ts'
import type { Target } from '../options.ts'
import { loadTarget } from '../target.ts'
import type { Answer } from '../text.ts'
import { entryToJson, stageToJson, viewKnown } from './stage-view.ts'

/** The flags of `rollout certify`. */
export interface CertifyOptions extends Target {
  readonly out?: string
  readonly key?: string
}

/**
 * Certifies the advice on the next step of a partner and its history as one JSON document; returns the exit status: 1 where the audit trail is
 * broken, and then nothing is written.
 */
export async function certifyPartner(partner: string, options: CertifyOptions): Promise<number> {
  const config = await loadTarget(options)
  const key = options.key === undefined ? undefined : await readSigningKey(options.key)
  const body = await readStore(config, (store) => describePartner(partner, config, store))
  if (body === undefined) {
    console.error(
      'markbridge: the audit trail is broken, so nothing is certified: markbridge rollout verify says where.',
    )
    return 1
  }
  const text = formatCertificate(body, key)
  if (options.out === undefined) console.log(text)
  else {
    await writeNew(options.out, `${text}\n`)
    console.error(`markbridge: the certificate is in ${options.out}`)
  }
  return 0
}

async function describePartner(
  partner: string,
  config: Config,
  store: OpenedRolloutStore,
): Promise<CertificateBody | undefined> {
  const snapshot = await store.snapshot()
  const view = viewKnown(partner, config, snapshot)
  const trail = await store.verify()
  if (trail.broken !== undefined) return undefined
  const advice = await giveAdvice(view, config, snapshot, store)
  return {
    issuedAt: new Date(snapshot.nowMs).toISOString(),
    version,
    partner,
    audit: { entries: trail.entries, mac: trail.head, keyed: trail.keyed },
    stage: stageToJson(view),
    advice: fullAdviceToJson(partner, advice),
    history: (await store.history({ partner })).map((entry) => entryToJson(entry)),
  }
}

/** A certificate is never replaced. */
async function writeNew(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text, { flag: 'wx', mode: 0o600 })
  } catch (cause) {
    const why =
      cause instanceof Error && 'code' in cause && cause.code === 'EEXIST'
        ? 'it is there already'
        : 'it cannot be written'
    throw new AdapterError('ADP_USAGE', `The certificate was not written to ${path}: ${why}.`, { cause })
  }
}

/** The flags of `rollout verify` with a certificate. */
export interface VerifyOptions extends Target {
  readonly publicKey?: string
  readonly offline?: boolean
}

const words = { holds: 'holds', fails: 'FAILS', unknown: 'not known' } as const

/**
 * Checks a certificate: its digest, its signature, and that the audit trail still holds and has what the certificate says; status 1
 * where one of them fails. Error: `ADP_USAGE` for a file that is not a certificate.
 */
export async function verifyCertificate(file: string, options: VerifyOptions): Promise<Answer> {
  const certificate = readCertificate((await readGivenFile(file)).toString('utf8'))
  const publicKey = options.publicKey === undefined ? undefined : await readPublicKey(options.publicKey)
  const findings = [
    ...verifyContent(certificate, publicKey),
    options.offline === true
      ? unasked
      : await readStore(await loadTarget(options), (store) => verifyHead(certificate, store)),
  ]
  const { partner, issuedAt } = certificate
  const isValid = findings.every(({ result }) => result !== 'fails')
  const lines = findings.map(({ check, result, what }) => `  ${check}: ${words[result]}. ${what}`)
  return {
    document: { partner, issuedAt, valid: isValid, findings },
    text: () =>
      [`Certificate of ${JSON.stringify(partner)}, ${JSON.stringify(issuedAt)}:`, ...lines].join('\n'),
    status: isValid ? 0 : 1,
  }
}

const unasked: Finding = { check: 'audit', result: 'unknown', what: 'The journal was not asked.' }

/** The trail has the entry that was its last one then, and all after it. */
async function verifyHead({ audit }: Certificate, store: OpenedRolloutStore): Promise<Finding> {
  const found = (result: Finding['result'], what: string): Finding => ({ check: 'audit', result, what })
  const { broken, entries, keyed } = await store.verify()
  if (broken !== undefined)
    return found('fails', `The audit trail is broken at entry ${broken.entry}: ${broken.what}.`)
  if (audit.entries > entries)
    return found(
      'fails',
      `The audit trail has ${entries} entries, and had ${audit.entries} when this was certified.`,
    )
  const mac = audit.entries === 0 ? '' : await store.macOf(audit.entries)
  if (mac !== audit.mac)
    return found('fails', `Entry ${audit.entries} of the audit trail is not the one that was certified.`)
  const since = entries - audit.entries
  const unkeyed = keyed
    ? ''
    : ' The journal has no keys, so another trail can be made by all who can write its database.'
  return found('holds', `The audit trail has what was certified, and ${since} entries since.${unkeyed}`)
}

/** Reads the private key that signs: `env:NAME` or `file:path` with Ed25519 in PEM. Error: `ADP_USAGE`, without anything of the key. */
async function readSigningKey(source: string): Promise<KeyObject> {
  const text = await readKeySource(source)
  // A variable that was set in a shell often has its line ends as \n.
  return expectEd25519(
    () => createPrivateKey(text.replaceAll('\\n', '\n')),
    `${source} is not a private key in PEM`,
  )
}

/** Reads a public key: a file with Ed25519 in PEM. Error: `ADP_USAGE`. */
async function readPublicKey(path: string): Promise<KeyObject> {
  const text = await readGivenFile(path)
  return expectEd25519(() => createPublicKey(text), `${path} is not a public key in PEM`)
}

function expectEd25519(read: () => KeyObject, otherwise: string): KeyObject {
  let key: KeyObject
  try {
    key = read()
  } catch {
    // The cause may quote the text.
    throw unusable(otherwise)
  }
  if (key.asymmetricKeyType !== 'ed25519') throw unusable(`${otherwise} of the type Ed25519`)
  return key
}

const unusable = (why: string): AdapterError =>
  new AdapterError('ADP_USAGE', `This key cannot be used: ${why}.`)
