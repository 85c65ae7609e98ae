import { systemClock } from '../clock.ts'
import { isLoopback } from '../http/address.ts'
import { changedPaths, type Config, type PartnerConfig, Secret } from '../config/index.ts'
import type { Events } from '../observability/events.ts'
import { isGuid } from '../odata/index.ts'
import type { AcceptedCredentials, Partner, QueueKeys } from '../partners/index.ts'
import type { LiveSeen } from '../rollout/seen/live-seen.ts'
import type { RecordMapping } from '../translate/index.ts'
import { createTokenSource, fetchToken, type TokenSource } from '../upstream/index.ts'
import { toFileStage } from './to-file-stage.ts'

/** A configuration with the partners that were made of it. */
export interface ConfiguredPartners {
  readonly config: Config
  readonly partners: readonly Partner[]
}

/**
 * The partners of a configuration. Given those of the one before, a partner that did not change is the same object, and one with the
 * same credentials for tokens keeps its token.
 */
export function toPartners(config: Config, before?: ConfiguredPartners): readonly Partner[] {
  const rateOf = callsPerSecondOf(config)
  const known = new Map(
    before?.config.partners.flatMap((own, index) => {
      const partner = before.partners[index]
      return partner === undefined ? [] : [[own.id, { own, partner }] as const]
    }),
  )
  return config.partners.map((own) => {
    const rate = rateOf(own)
    const old = known.get(own.id)
    if (old === undefined) return toPartner(own, rate, toTokenSource(own.v3.auth), config)
    const isSame = rate === old.partner.callsPerSecond && changedPaths(old.own, own).length === 0
    if (isSame) return old.partner
    const keepsTokens = changedPaths(old.own.v3.auth, own.v3.auth).length === 0
    return toPartner(own, rate, keepsTokens ? old.partner.tokens : toTokenSource(own.v3.auth), config)
  })
}

/** Records of one `$batch` to V3. */
export const MAX_BATCH_RECORDS = 100

/** A partner of the configuration as the proxy needs it. */
export function toPartner(
  partner: PartnerConfig,
  callsPerSecond: number | undefined,
  tokens: TokenSource | undefined,
  { upstreams, rollout }: Pick<Config, 'upstreams' | 'rollout'>,
): Partner {
  const { v3, canary } = partner
  const { subscriptionKey } = v3
  return {
    id: partner.id,
    match: toMatch(partner.match),
    fileStage: toFileStage(partner, rollout),
    unit: { claim: canary.claim, header: canary.header?.toLowerCase() },
    v2: partner.v2.baseUrl ?? upstreams.v2?.baseUrl,
    replaysV2: partner.v2.replay === 'stored',
    identityClaims: partner.identity.claims,
    layout: partner.layout,
    serviceHosts: partner.serviceHosts,
    ...partner.quirks,
    errorMessages: Object.keys(partner.errorMessages).length === 0 ? undefined : partner.errorMessages,
    mapping: toMapping(partner),
    reads: { ...partner.reads, unmarkedCodes: partner.reads.unmarkedCodes.filter(isGuid) },
    unmarkedLetters: partner.reads.unmarkedCodes.filter((code) => !isGuid(code)),
    bodyProfile: v3.bodyProfile,
    concurrency: v3.concurrency,
    batch:
      v3.writeMode === 'single'
        ? undefined
        : {
            mode: v3.writeMode,
            format: v3.batchFormat,
            maxRecords: MAX_BATCH_RECORDS,
            concurrency: v3.concurrency,
          },
    budgetMs: v3.budgetMs,
    readBackAfterMs: v3.readBackAfterMs,
    callsPerSecond,
    compare: { percent: partner.compare.percent, settleMs: partner.compare.settleMs },
    checkV2Percent: partner.check.v2,
    subscriptionKey: subscriptionKey === undefined ? undefined : () => subscriptionKey.reveal(),
    tokens,
  }
}

function toMatch(match: PartnerConfig['match']): Partner['match'] {
  if (!('header' in match)) return match
  const { name, value } = match.header
  return { header: { name, value: value.reveal() } }
}

/** The tokens of a partner with client credentials; the schema has seen to it that they are complete. */
export function toTokenSource(auth: PartnerConfig['v3']['auth']): TokenSource | undefined {
  const { mode, tokenUrl, clientId, clientSecret, scope, organisation } = auth
  if (mode !== 'clientCredentials' || tokenUrl === undefined || clientId === undefined) return undefined
  if (clientSecret === undefined || scope === undefined) return undefined
  const client = {
    tokenUrl,
    clientId: clientId instanceof Secret ? clientId.reveal() : clientId,
    clientSecret: () => clientSecret.reveal(),
    scope,
    organisation,
  }
  return createTokenSource({ fetch: () => fetchToken(client), nowMs: () => systemClock.nowMs() })
}

/** A partner's choices for V3 records. */
export function toMapping({ v3, changeProcessName, unmappedFields }: PartnerConfig): RecordMapping {
  const { eventType, codeType } = v3
  return { eventType, codeType, changeProcessName, unmappedFields }
}

/**
 * The credentials of clients, with a note of what V3 says last to those of each partner. A refusal of credentials that no service has
 * accepted says nothing of the partner's.
 */
export function noteCredentials(
  accepted: AcceptedCredentials,
  seen: Pick<LiveSeen, 'credentials'>,
  queueKeys: Pick<QueueKeys, 'of'>,
  events: Pick<Events, 'ownCredentialsDenied'>,
): AcceptedCredentials {
  return {
    ...accepted,
    accept: (client) => {
      accepted.accept(client)
      seen.credentials(client.partner.id, 'accepted')
    },
    deny: (client) => {
      accepted.deny(client)
      if (queueKeys.of(client).isAccepted()) seen.credentials(client.partner.id, 'refused')
    },
    ownDenied: (partner, what) => {
      seen.credentials(partner, 'ownRefused')
      events.ownCredentialsDenied({ partner, what })
    },
  }
}

/** The rate that the service allows one integrator (service-facts 9). */
const SERVICE_LIMIT = 5

/**
 * The calls to V3 that each partner may make in a second; undefined: no limit. Left out, it is the service's limit, and none for
 * an upstream on a loopback address, which is a stand-in. Partners with one configured key share its calls, so that the
 * lowest of their rates counts.
 */
export function callsPerSecondOf({
  partners,
  upstreams,
}: Pick<Config, 'partners' | 'upstreams'>): (partner: PartnerConfig) => number | undefined {
  const unset = isLoopback(upstreams.v3.baseUrl.hostname) ? undefined : SERVICE_LIMIT
  const rateOf = ({ v3: { callsPerSecond = unset } }: PartnerConfig): number | undefined =>
    callsPerSecond === 'none' ? undefined : callsPerSecond
  const lowest = new Map<string, number>()
  for (const partner of partners) {
    const [key, rate] = [partner.v3.subscriptionKey?.reveal(), rateOf(partner)]
    if (key !== undefined && rate !== undefined) lowest.set(key, Math.min(rate, lowest.get(key) ?? rate))
  }
  return (partner) => {
    const key = partner.v3.subscriptionKey?.reveal()
    return key === undefined ? rateOf(partner) : lowest.get(key)
  }
}
