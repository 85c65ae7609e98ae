import { writeFile } from 'node:fs/promises'

import { markFileOf } from '../app/stage-file.ts'
import { type CertificateBody, createCertificate } from '../compare/certificate/certificate.ts'
import type { Json } from '../compare/certificate/canonical-json.ts'
import { toFigures, toRunDocument } from '../compare/evidence/index.ts'
import { publishRun } from '../compare/report/publish-run.ts'
import { type Config, journalUrlOf, keysOf } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { openInspector } from '../journal/index.ts'
import { neededCheck } from '../rollout/advise-comparison.ts'
import type { KeptEvidence } from '../rollout/evidence/evidence-store.ts'
import type { OpenedRolloutStore } from '../rollout/store/open-rollout-store.ts'
import { fullAdviceToJson, giveAdvice, neededOf } from './rollout/give-advice.ts'
import { expectMayLook, loadTarget, openTargetStore, type RolloutTarget } from './rollout/open-target.ts'
import { entryToJson, toJson } from './rollout/rollout-json.ts'
import { readSigningKey } from './rollout/signing-key.ts'
import { type StageView, viewKnown } from './rollout/stage-view.ts'
import { version } from './version.ts'

/** The flags of `rollout certify`. */
export interface CertifyOptions extends RolloutTarget {
  readonly out?: string
  readonly key?: string
  readonly exact?: boolean
}

/**
 * Certifies what is known of a partner as one JSON document; returns the exit status: 1 where the audit trail is broken (nothing is
 * written then) or the ledger does not add up.
 */
export async function certifyPartner(partner: string, options: CertifyOptions): Promise<number> {
  const config = await loadTarget(options)
  expectMayLook(config)
  const key = options.key === undefined ? undefined : await readSigningKey(options.key)
  const store = await openTargetStore(config)
  try {
    const body = await describePartner(partner, config, store, options.exact === true)
    if (body === undefined) {
      console.error(
        'markbridge: the audit trail is broken, so nothing is certified: markbridge rollout verify says where.',
      )
      return 1
    }
    const text = JSON.stringify(createCertificate(body, key), null, 2)
    if (options.out === undefined) console.log(text)
    else {
      await writeNew(options.out, `${text}\n`)
      console.error(`markbridge: the certificate is in ${options.out}`)
    }
    if (holds(body.balance)) return 0
    console.error('markbridge: the ledger of this partner does not add up: markbridge journal ls.')
    return 1
  } finally {
    await store.close()
  }
}

async function describePartner(
  partner: string,
  config: Config,
  store: OpenedRolloutStore,
  exact: boolean,
): Promise<CertificateBody | undefined> {
  const snapshot = await store.snapshot()
  const view = viewKnown(partner, config, snapshot)
  const trail = await store.verify()
  if (trail.broken !== undefined) return undefined
  const advice = await giveAdvice(view, config, snapshot, store)
  const kept = findKept(await store.evidence.read(partner), view)
  const check = neededCheck(view.setting?.stage ?? 'legacy')
  const comparison =
    check === undefined
      ? null
      : { figures: toFigures(kept, check, neededOf(config)), thresholds: neededOf(config) }
  return {
    issuedAt: new Date(snapshot.nowMs).toISOString(),
    version,
    partner,
    audit: { entries: trail.entries, mac: trail.head, keyed: trail.keyed },
    stage: toJsonValue(toJson(view)),
    advice: toJsonValue(fullAdviceToJson(partner, advice)),
    comparison: toJsonValue(comparison),
    report: kept === undefined ? null : toJsonValue(publishRun(toRunDocument(kept), { exact })),
    balance: await readBalance(partner, config),
    history: (await store.history({ partner })).map((entry) => toJsonValue(entryToJson(entry))),
    configuration: configurationOf(partner, config),
  }
}

function findKept(kept: readonly KeptEvidence[], { revision, setting }: StageView): KeptEvidence | undefined {
  return kept.find(({ scope }) => scope.revision === revision && scope.stage === setting?.stage)
}

async function readBalance(partner: string, { journal }: Config): Promise<Json> {
  const inspector = await openInspector(journalUrlOf(journal), markFileOf(journal))
  try {
    const balances = await inspector.balances()
    return toJsonValue(balances.find((balance) => balance.partner === partner) ?? null)
  } finally {
    await inspector.close()
  }
}

/** As `config print` shows it: without secrets; the other partners are none of the reader's business. */
function configurationOf(partner: string, config: Config): Json {
  return toJsonValue({ ...keysOf(config), partners: config.partners.filter(({ id }) => id === partner) })
}

/** What is certified is what is printed. */
const toJsonValue = (value: unknown): Json => JSON.parse(JSON.stringify(value)) as Json

function holds(balance: Json): boolean {
  return balance === null || (typeof balance === 'object' && 'holds' in balance && balance.holds === true)
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
