import { journalKeysOf, journalUrlOf } from './journal-schema.ts'
import type { Config, PartnerConfig } from './schema.ts'

/** Returns one-line warnings about valid but risky settings, for `workers` processes that share the port. `today` is `YYYY-MM-DD`. */
export function warningsOf(config: Config, workers: number, today: string): readonly string[] {
  return [
    ...keyWarnings(config, workers),
    ...approvalWarnings(config),
    ...unitWarnings(config),
    ...stateDirWarnings(config),
    ...ruleWarnings(config, today),
  ]
}

/** Warns about expired rules, which stay in the file until somebody notices them. */
function ruleWarnings({ partners }: Config, today: string): readonly string[] {
  return partners.flatMap(({ id, compare }) =>
    compare.rules
      .filter(({ expires }) => expires < today)
      .map(
        ({ name, owner, expires, path }) =>
          `partner ${id}: the rule ${name} (owner: ${owner}) expired on ${expires}. Differences of ${path} count again. ` +
          'Remove the rule from compare.rules, or set a later day as expires if the reason of the rule still holds.',
      ),
  )
}

function keyWarnings({ journal, partners }: Config, workers: number): readonly string[] {
  const url = journalUrlOf(journal)
  const isShared = url !== 'none' && (workers > 1 || !url.startsWith('sqlite:'))
  if (!isShared || journalKeysOf(journal).length > 0 || !partners.some(needsItsClient)) return []
  const sharers = workers > 1 ? `${workers} workers share the journal` : 'instances can share the journal'
  return [
    `journal.keys is empty, and ${sharers}. Without a key the journal stores no credentials. A write that a crash interrupted waits ` +
      'until its client sends the same batch or the same token again, and becomes a dead letter after one day. Add a key to journal.keys.',
  ]
}

/**
 * Warns about stages in the file that have no effect. If a step forward needs two approvals, the file alone cannot move a partner forward.
 */
function approvalWarnings({ rollout, partners }: Config): readonly string[] {
  if (rollout.approval !== 'two') return []
  const further = partners
    .filter(({ stage }) => stage !== 'legacy')
    .map(({ id, stage }) => `${id} (${stage})`)
  if (further.length === 0) return []
  return [
    `rollout.approval is two, so a partner without a stored stage begins at legacy. The file has another stage for: ${further.join(', ')}. ` +
      'Set stage: legacy for these partners, and move them forward with markbridge rollout set. markbridge rollout ls shows their stages.',
  ]
}

/** Warns if no header names the school of a request, because a token may not name the school either. */
function unitWarnings(config: Config): readonly string[] {
  return config.partners
    .filter(({ canary }) => canary.header === undefined)
    .filter((partner) => (hasV2(config, partner) && !isPastCanary(partner)) || usesCanary(partner.canary))
    .map(
      ({ id, canary }) =>
        `partner ${id} has no canary.header. If tokens are opaque or have no claim "${canary.claim}", Markbridge cannot distinguish schools that share a subscription key, ` +
        'and moves all of them at once. Set canary.header to a header that names the school.',
    )
}

/** Warns if `journal.stateDir` is missing. An SQLite journal needs no such folder, because the stage file is beside the database. */
function stateDirWarnings(config: Config): readonly string[] {
  const { journal, partners } = config
  const url = journalUrlOf(journal)
  if (url === 'none' || url.startsWith('sqlite:') || journal.stateDir !== undefined) return []
  if (!partners.some((partner) => hasV2(config, partner))) return []
  return [
    'journal.stateDir is not set, and the journal is in PostgreSQL. An instance that starts while the database is down does not know the ' +
      'stages of its partners and is not ready. Set journal.stateDir to a folder of each instance, such as /var/lib/markbridge.',
  ]
}

const hasV2 = ({ upstreams }: Config, { v2 }: PartnerConfig): boolean =>
  (v2.baseUrl ?? upstreams.v2) !== undefined

const isPastCanary = ({ stage }: PartnerConfig): boolean => stage === 'v3' || stage === 'complete'

const usesCanary = ({ percent, always, never }: PartnerConfig['canary']): boolean =>
  percent > 0 || always.length + never.length > 0

/** Returns true if the partner lacks its own token or key, so that Markbridge can finish writes only with the client's credentials. */
function needsItsClient({ v3 }: PartnerConfig): boolean {
  return v3.auth.mode !== 'clientCredentials' || v3.subscriptionKey === undefined
}
