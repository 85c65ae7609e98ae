import {
  type Finding,
  readCertificate,
  type ReadCertificate,
  verifyContent,
} from '../compare/certificate/verify-certificate.ts'
import type { OpenedRolloutStore } from '../rollout/store/open-rollout-store.ts'
import { expectMayLook, loadTarget, openTargetStore, type RolloutTarget } from './rollout/open-target.ts'
import { readPublicKey, readText } from './rollout/signing-key.ts'

/** The flags of `rollout verify` with a certificate. */
export interface VerifyOptions extends RolloutTarget {
  readonly publicKey?: string
  readonly offline?: boolean
}

const words = { holds: 'holds', fails: 'FAILS', unknown: 'not known' } as const

/**
 * Checks a certificate: its digest, its signature, and that the audit trail still holds and has what the certificate says; returns 1
 * where one of them fails. Error: `ADP_USAGE` for a file that is not a certificate.
 */
export async function verifyCertificate(file: string, options: VerifyOptions): Promise<number> {
  const certificate = readCertificate(await readText(file))
  const publicKey = options.publicKey === undefined ? undefined : await readPublicKey(options.publicKey)
  const findings = [
    ...verifyContent(certificate, publicKey),
    options.offline === true ? unasked : await withStore(options, (store) => verifyHead(certificate, store)),
  ]
  const { partner, issuedAt } = certificate
  const isValid = findings.every(({ result }) => result !== 'fails')
  if (options.json === true) console.log(JSON.stringify({ partner, issuedAt, valid: isValid, findings }))
  else {
    const lines = findings.map(({ check, result, what }) => `  ${check}: ${words[result]}. ${what}`)
    console.log(
      [`Certificate of ${JSON.stringify(partner)}, ${JSON.stringify(issuedAt)}:`, ...lines].join('\n'),
    )
  }
  return isValid ? 0 : 1
}

const unasked: Finding = { check: 'audit', result: 'unknown', what: 'The journal was not asked.' }

/** The trail has the entry that was its last one then, and all after it. */
async function verifyHead({ audit }: ReadCertificate, store: OpenedRolloutStore): Promise<Finding> {
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

async function withStore<Result>(
  options: RolloutTarget,
  work: (store: OpenedRolloutStore) => Promise<Result>,
): Promise<Result> {
  const config = await loadTarget(options)
  expectMayLook(config)
  const store = await openTargetStore(config)
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}
