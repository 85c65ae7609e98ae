import {
  CompactSign,
  compactVerify,
  type CryptoKey,
  decodeJwt,
  decodeProtectedHeader,
  importPKCS8,
  importSPKI,
} from 'jose'
import * as z from 'zod'

import { toFigures } from '../../compare/evidence/read-evidence.ts'
import type { Config } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import { neededCheck } from '../../rollout/advise.ts'
import type { KeptEvidence } from '../../rollout/evidence/read-kept.ts'
import { seenOf, unreadableOf } from '../../rollout/evidence/seen-writes.ts'
import { describeFault } from '../../rollout/store/audit-trail.ts'
import { entryToJson } from '../../rollout/partner-document.ts'
import type { OpenedRolloutStore } from '../../rollout/store/rollout-store.ts'
import { type Answer, formatCounted, formatGivenText, formatHints } from '../text.ts'
import { readGivenFile, readKeySource, writeResult } from '../files.ts'
import type { Target } from '../options.ts'
import { loadTarget } from '../target.ts'
import { version } from '../version.ts'
import { findStages, fullAdviceToJson, giveAdvice } from './advice.ts'
import { readStore } from './open-store.ts'
import { describeStage, viewKnown } from './stage-view.ts'

/** The `typ` in the JWS header of a certificate. It keeps a signed text of another kind from passing as a certificate. */
const TYPE = 'markbridge-certificate+json'
const ALGORITHM = 'EdDSA'

const header = z.object({ alg: z.literal(ALGORITHM), typ: z.literal(TYPE) })

/** The members of a certificate that `verify` checks. The other members are for readers. */
const form = z.looseObject({
  partner: z.string(),
  issuedAt: z.string(),
  /** The head of the audit trail when the certificate was issued. `hash` is empty if the trail had no entries. */
  audit: z.object({ entries: z.int().nonnegative(), hash: z.string() }),
})
type Certificate = z.infer<typeof form>

export interface CertifyOptions extends Target {
  readonly out?: string
  readonly force?: boolean
  readonly signingKey: string
}

/**
 * Signs the known facts about a partner as a JWS (RFC 7515) in the compact form: the stage, the advice on the next step, the evidence of
 * every stage, the history, and the head of the audit trail. If the audit trail is broken, writes nothing and returns exit status 1.
 */
export async function certifyPartner(partner: string, options: CertifyOptions): Promise<number> {
  const config = await loadTarget(options)
  const key = await readSigningKey(options.signingKey)
  const content = await readStore(config, (store) => describePartner(partner, config, store))
  if (content === undefined) {
    console.error(
      formatHints(
        'markbridge: the audit trail is broken. No certificate was written. Run markbridge rollout verify to find the place of the fault.',
        options,
      ),
    )
    return 1
  }
  const text = await new CompactSign(Buffer.from(JSON.stringify(content)))
    .setProtectedHeader({ alg: ALGORITHM, typ: TYPE })
    .sign(key)
  if (options.out === undefined) console.log(text)
  else {
    await writeResult(options.out, `${text}\n`, options.force)
    console.error(`markbridge: the certificate is in ${options.out}`)
  }
  return 0
}

/** Returns the content of a certificate, or `undefined` if the audit trail is broken. */
async function describePartner(
  partner: string,
  config: Config,
  store: OpenedRolloutStore,
): Promise<object | undefined> {
  const found = await findStages(store)
  const view = viewKnown(partner, config, found.snapshot)
  if (found.trail.broken !== undefined) return undefined
  return {
    issuedAt: new Date(found.snapshot.nowMs).toISOString(),
    version,
    partner,
    audit: found.trail.head,
    stage: describeStage(view).document,
    advice: fullAdviceToJson(partner, await giveAdvice(view, config, found)),
    evidence: (await store.evidence.read(partner)).map((kept) => evidenceToJson(kept, config)),
    history: (await store.history({ partner })).map((entry) => entryToJson(entry)),
  }
}

/**
 * Converts the evidence of one stage and percentage to JSON. The figures of the comparison depend on the thresholds of the current
 * configuration.
 */
function evidenceToJson(kept: KeptEvidence, { rollout }: Pick<Config, 'rollout'>): object {
  const { stage, revision } = kept.scope
  const check = neededCheck(stage)
  return {
    stage,
    revision,
    from: new Date(kept.sinceMs).toISOString(),
    to: new Date(kept.lastMs).toISOString(),
    seen: { v2: seenOf(kept, 'v2'), v3: seenOf(kept, 'v3'), unreadable: unreadableOf(kept) },
    comparison: check === undefined ? null : toFigures(kept, check, rollout.evidence),
  }
}

export interface VerifyOptions extends Target {
  readonly publicKey?: string
  readonly offline?: boolean
}

interface Finding {
  readonly check: 'signature' | 'audit'
  /** The result of the check, or `unknown` if the check was not made. */
  readonly result: 'holds' | 'fails' | 'unknown'
  readonly what: string
}

const words = { holds: 'holds', fails: 'FAILS', unknown: 'not known' } as const

/**
 * Checks the signature of a certificate, and checks that the audit trail still contains the certified head. The exit status is 1 if a check
 * fails. Throws `ADP_USAGE` if the file is not a certificate.
 */
export async function verifyCertificate(file: string, options: VerifyOptions): Promise<Answer> {
  const jws = (await readGivenFile(file)).toString('utf8').trim()
  const certificate = readCertificate(jws)
  const findings = [
    await verifySignature(jws, options.publicKey),
    options.offline === true
      ? found('audit', 'unknown', 'The journal was not read.')
      : await readStore(await loadTarget(options), (store) => verifyHead(certificate, store)),
  ]
  const { partner, issuedAt } = certificate
  const isValid = findings.every(({ result }) => result !== 'fails')
  const lines = findings.map(({ check, result, what }) => `  ${check}: ${words[result]}. ${what}`)
  return {
    document: { partner, issuedAt, valid: isValid, findings, certificate },
    text: () =>
      [`Certificate of ${formatGivenText(partner)}, ${formatGivenText(issuedAt)}:`, ...lines].join('\n'),
    status: isValid ? 0 : 1,
  }
}

const found = (check: Finding['check'], result: Finding['result'], what: string): Finding => ({
  check,
  result,
  what,
})

/** Decodes a certificate without checking its signature. Throws `ADP_USAGE` if the text is not a certificate. */
function readCertificate(jws: string): Certificate {
  try {
    header.parse(decodeProtectedHeader(jws))
    return form.parse(decodeJwt(jws))
  } catch (cause) {
    throw new AdapterError(
      'ADP_USAGE',
      `The file is not a certificate: it is not a JWS of the type ${TYPE}. Nothing was checked. Name a file that markbridge rollout certify wrote.`,
      { cause },
    )
  }
}

async function verifySignature(jws: string, keyFile: string | undefined): Promise<Finding> {
  if (keyFile === undefined)
    return found(
      'signature',
      'unknown',
      'The signature was not checked. Name the key that you trust with --public-key.',
    )
  const key = await readPublicKey(keyFile)
  return compactVerify(jws, key, { algorithms: [ALGORITHM] }).then(
    () => found('signature', 'holds', 'This key signed the certificate, which has not changed since.'),
    () => found('signature', 'fails', 'The certificate was changed, or another key signed it.'),
  )
}

/** Checks that the audit trail still contains the entry that was the last one when the certificate was issued. */
async function verifyHead({ audit }: Certificate, store: OpenedRolloutStore): Promise<Finding> {
  const { broken, head } = await store.verify(audit)
  if (broken !== undefined) return found('audit', 'fails', `The audit trail is ${describeFault(broken)}`)
  const since = formatCounted(head.entries - audit.entries, 'later entry', 'later entries')
  return found('audit', 'holds', `The audit trail contains the certified entries, and ${since}.`)
}

/** Reads a private Ed25519 key in PEM from `env:NAME` or `file:path`. Throws `ADP_USAGE` without quoting the key. */
async function readSigningKey(source: string): Promise<CryptoKey> {
  const text = await readKeySource(source, '--signing-key')
  // A shell variable often contains the two characters `\n` in place of a line end.
  return importPKCS8(text.replaceAll('\\n', '\n'), ALGORITHM).catch(() => {
    throw unusableKey(`${source} is not a private key in PEM of the type Ed25519`)
  })
}

async function readPublicKey(path: string): Promise<CryptoKey> {
  const text = (await readGivenFile(path)).toString('utf8')
  return importSPKI(text, ALGORITHM).catch(() => {
    throw unusableKey(`${path} is not a public key in PEM of the type Ed25519`)
  })
}

/** Returns the error for a key that cannot be used. Its `cause` is left out, because the message of the cause may quote the key. */
const unusableKey = (why: string): AdapterError =>
  new AdapterError(
    'ADP_USAGE',
    `The key cannot be used: ${why}. Nothing was signed or checked. Name a file or variable with such a key.`,
  )
