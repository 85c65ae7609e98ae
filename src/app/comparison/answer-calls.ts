import { comparisonQueueKey, type PaceStore } from '../../compare/live/index.ts'
import { AdapterError } from '../../errors.ts'
import { type AcceptedCredentials, authoriseClient, type PartnerRegistry } from '../../partners/index.ts'
import type { Authorisation } from '../../partners/partner.ts'
import type { EvidenceStore, RolloutStore } from '../../rollout/index.ts'
import type { RateLimits } from '../../upstream/index.ts'
import type { PostedClient, ThreadCall, ThreadCalls } from './messages.ts'

/** What the thread of comparisons may use of the adapter. */
export interface CallParts {
  readonly registry: Pick<PartnerRegistry, 'of' | 'partners'>
  readonly rateLimits: RateLimits
  readonly accepted: AcceptedCredentials
  /** Undefined: no journal is configured. */
  readonly journal: ComparisonJournal | undefined
  /** Aborts when the adapter stops. */
  readonly stopped: AbortSignal
}

/** The journal as far as comparisons use it. */
export interface ComparisonJournal {
  /** Where instances share the pace of comparisons. */
  readonly pace: PaceStore
  readonly evidence: Pick<EvidenceStore, 'key' | 'add'>
  readonly store: Pick<RolloutStore, 'readEvidence' | 'updateEvidence'>
}

/** Answers one call of the thread. Rejects with `AdapterError`. */
export type CallAnswers = (call: ThreadCall) => Promise<unknown>

/** Creates what answers the calls of the thread. */
export function createCallAnswers(parts: CallParts): CallAnswers {
  const calls = toCalls(parts)
  return (call) => {
    const answer: (...args: never) => Promise<unknown> = calls[call.name]
    // Names and arguments belong together by the type of `ThreadCall`.
    return answer(...(call.args as never))
  }
}

function toCalls({ registry, rateLimits, accepted, journal, stopped }: CallParts): ThreadCalls {
  const authorise = async ({ partner: id, ...client }: PostedClient): Promise<Authorisation> => {
    const partner = registry.of(id)
    if (partner === undefined) throw new AdapterError('ADP_INTERNAL', 'The partner was removed.')
    return authoriseClient({ ...client, partner }, rateLimits)
  }
  const opened = (): ComparisonJournal => {
    if (journal !== undefined) return journal
    throw new AdapterError(
      'ADP_JOURNAL_UNAVAILABLE',
      'No journal is configured, so live comparison keeps nothing.',
    )
  }
  return {
    authorise: async (client) => {
      const { credentials, renew, rateLimit } = await authorise(client)
      return { credentials, canRenew: renew !== undefined, isLimited: rateLimit !== undefined }
    },
    renew: async (client, refused) => {
      const { partner, credentials } = await authorise(client)
      if (partner.tokens === undefined || credentials.authorization !== refused.authorization)
        return credentials
      const token = await partner.tokens.renew(refused.authorization.replace(/^Bearer /, ''))
      return { ...credentials, authorization: `Bearer ${token}` }
    },
    accepted: (client) => {
      accepted.accept({ ...client, partner: { id: client.partner } })
      return Promise.resolve()
    },
    acquire: async (client, leftMs) => {
      const { rateLimit } = await authorise(client)
      if (rateLimit === undefined) return true
      const queueKey = comparisonQueueKey(client.partner)
      const deadlineMs = rateLimit.nowMs() + leftMs
      return (await rateLimit.acquire('comparison', deadlineMs, queueKey, stopped)).admitted
    },
    sincePauseMs: async (client) => {
      const { rateLimit } = await authorise(client)
      return rateLimit === undefined ? Infinity : rateLimit.sincePauseMs()
    },
    reservePace: async (name, limit, count) => opened().pace.reserve(name, limit, count),
    pausePace: async (name, ms) => opened().pace.pauseFor(name, ms),
    sincePacePauseMs: async (name) => opened().pace.sincePauseMs(name),
    evidenceKey: async (scope) => {
      const { period, today, days, secret } = await opened().evidence.key(scope)
      return { period, today, days, secret }
    },
    addEvidence: async (period, entries) => opened().evidence.add({ period }, entries),
    readEvidence: async (name) => opened().store.readEvidence(name),
    replaceEvidence: async (name, read, text) => {
      let isSame = false
      await opened().store.updateEvidence(name, (kept) => {
        isSame = (kept ?? '') === (read ?? '')
        return isSame ? text : (kept ?? '')
      })
      return isSame
    },
  }
}
