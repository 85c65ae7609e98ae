import { systemClock } from '../clock.ts'
import {
  changedPaths,
  type Config,
  ownershipChanges,
  type PartnerConfig,
  planReload,
  refuseReload,
  Secret,
} from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { isLoopback } from '../http/address.ts'
import type { Journal } from '../journal/index.ts'
import { isGuid } from '../odata/index.ts'
import { identify } from '../partners/owner.ts'
import type { Partner } from '../partners/partner.ts'
import type { PartnerRegistry } from '../partners/registry.ts'
import type { StageSetting } from '../rollout/stage.ts'
import type { RecordMapping } from '../translate/index.ts'
import {
  createTokenSource,
  fetchToken,
  type RateLimits,
  type TokenSource,
  type UpstreamRoute,
} from '../upstream/index.ts'
import { type BatchLimits, defaultBatchLimits } from '../v2/index.ts'
import type { ApplyConfig } from './reload.ts'

interface ConfiguredPartners {
  readonly config: Config
  readonly partners: readonly Partner[]
}

interface TokenRequests {
  /** The proxy and the certificates for connections to the token endpoints. */
  readonly route?: UpstreamRoute
  /**
   * Called each time that a token endpoint issues no token for a partner. `isDenied` is true if the endpoint rejected the configured
   * client.
   */
  readonly onFailed?: (partner: string, isDenied: boolean) => void
}

/**
 * Creates the partners of a configuration. Reuses partners of `before` whose settings are unchanged, and tokens whose `v3.auth` is
 * unchanged.
 */
export function toPartners(
  config: Config,
  requests?: TokenRequests,
  before?: ConfiguredPartners,
): readonly Partner[] {
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
    if (old === undefined) return toPartner(own, rate, toTokenSource(own, requests), config)
    const isSame = rate === old.partner.callsPerSecond && changedPaths(old.own, own).length === 0
    if (isSame) return old.partner
    const keepsTokens = changedPaths(old.own.v3.auth, own.v3.auth).length === 0
    return toPartner(own, rate, keepsTokens ? old.partner.tokens : toTokenSource(own, requests), config)
  })
}

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
    guard: partner.guard,
    unit: { claim: canary.claim, header: canary.header?.toLowerCase() },
    v2: partner.v2.baseUrl ?? upstreams.v2?.baseUrl,
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
            maxRecords: v3.batchRecords,
            recordMs: v3.batchRecordMs,
            concurrency: v3.concurrency,
          },
    budgetMs: v3.budgetMs,
    readBackAfterMs: v3.readBackAfterMs,
    batchRecordMs: v3.batchRecordMs,
    callsPerSecond,
    compare: { percent: partner.compare.percent, settleMs: partner.compare.settleMs },
    checkV2Percent: partner.check.v2,
    subscriptionKey: subscriptionKey === undefined ? undefined : () => subscriptionKey.reveal(),
    tokens,
  }
}

/** Returns the owner of the batches of a client with these credentials. Needs no secret of the partner. */
export function ownerOfClient(
  { id, match, identity, canary, v3 }: PartnerConfig,
  credentials: Parameters<typeof identify>[1],
): string {
  const tokens = v3.auth.mode === 'clientCredentials' ? true : undefined
  return identify({ id, match, identityClaims: identity.claims, unit: canary, tokens }, credentials).owner
}

/** Returns the stage at which a partner begins. With two approvals the stage is `legacy`, so that the file alone cannot move a partner forward. */
export function toFileStage(
  { stage, canary }: PartnerConfig,
  { approval }: Pick<Config['rollout'], 'approval'>,
): StageSetting {
  return {
    stage: approval === 'two' ? 'legacy' : stage,
    percent: canary.percent,
    always: canary.always,
    never: canary.never,
  }
}

function toMatch(match: PartnerConfig['match']): Partner['match'] {
  if (!('header' in match)) return match
  const { name, value } = match.header
  return { header: { name, value: value.reveal() } }
}

/** Creates the source of a partner's tokens, or returns `undefined` for a partner without client credentials. */
export function toTokenSource(
  { id, v3 }: PartnerConfig,
  { route, onFailed }: TokenRequests = {},
): TokenSource | undefined {
  const { mode, tokenUrl, clientId, clientSecret, scope, organisation } = v3.auth
  if (mode !== 'clientCredentials' || tokenUrl === undefined || clientId === undefined) return undefined
  if (clientSecret === undefined || scope === undefined) return undefined
  const client = {
    tokenUrl,
    clientId: clientId instanceof Secret ? clientId.reveal() : clientId,
    clientSecret: () => clientSecret.reveal(),
    scope,
    organisation,
  }
  const fetch = () =>
    fetchToken(client, route).catch((error: unknown) => {
      onFailed?.(id, error instanceof AdapterError && error.code === 'ADP_V3_CREDENTIALS')
      throw error
    })
  return createTokenSource({ fetch, nowMs: () => systemClock.nowMs() })
}

export const batchLimitsOf = ({ limits }: Pick<Config, 'limits'>): BatchLimits => ({
  ...defaultBatchLimits,
  ...limits,
})

export function toMapping({ v3, changeProcessName, unmappedFields }: PartnerConfig): RecordMapping {
  const { eventType, codeType } = v3
  return { eventType, codeType, changeProcessName, unmappedFields }
}

/** The number of calls per second that the service allows one integrator (service-facts 9). */
const SERVICE_LIMIT = 5

/**
 * Returns the number of calls per second that a partner may make to `service`, or `undefined` if there is no limit. The default is the
 * limit of the real service. A loopback address has no limit by default, because it belongs to a sandbox or a test.
 */
export function ownRateOf({ v3 }: PartnerConfig, service: URL): number | undefined {
  const { callsPerSecond = isLoopback(service.hostname) ? undefined : SERVICE_LIMIT } = v3
  return callsPerSecond === 'none' ? undefined : callsPerSecond
}

/**
 * Returns a function that returns the number of calls per second that a partner may make to V3, or `undefined` if there is no limit.
 * Partners with the same configured subscription key share one limit, the lowest of their rates.
 */
export function callsPerSecondOf({
  partners,
  upstreams,
}: Pick<Config, 'partners' | 'upstreams'>): (partner: PartnerConfig) => number | undefined {
  const rateOf = (partner: PartnerConfig): number | undefined => ownRateOf(partner, upstreams.v3.baseUrl)
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

interface ReloadedParts {
  readonly registry: Pick<PartnerRegistry, 'replace'>
  readonly rateLimits: Pick<RateLimits, 'forgetRates'>
  /** The settings of token requests. A reload does not replace them, because a reload does not change the upstreams. */
  readonly tokenRequests: TokenRequests
  /** Resolves with the open journal, or with `undefined` if the adapter was not started. */
  readonly journal: () => Promise<Pick<Journal, 'unsettled'> | undefined>
  readonly onApplied: (config: Config) => void
}

/** Creates the function that applies a new configuration in this process. `first` is the configuration with which the process started. */
export function createApplyConfig(
  first: ConfiguredPartners,
  { registry, tokenRequests, rateLimits, journal, onApplied }: ReloadedParts,
): ApplyConfig {
  let current = first
  return async (next) => {
    const opened = await journal()
    const { config, changes } = planReload(current.config, next)
    if (opened !== undefined) await checkPartnerChanges(current.config, config, opened)
    const partners = toPartners(config, tokenRequests, current)
    // Applies the new configuration as a whole, because no later statement can fail.
    registry.replace(partners)
    // Resets the rate limits, because a rate limit otherwise keeps the lowest rate that its subscription key ever had.
    if (partners.some((partner, place) => partner !== current.partners[place])) rateLimits.forgetRates()
    current = { config, partners }
    onApplied(config)
    return changes
  }
}

/** Throws `ADP_CONFIGURATION` if a change would separate a partner from its unsettled records. Throws the errors of the journal. */
async function checkPartnerChanges(
  running: Config,
  next: Config,
  journal: Pick<Journal, 'unsettled'>,
): Promise<void> {
  const changes = ownershipChanges(running, next)
  if (changes.length === 0) return
  const unsettled = await journal.unsettled()
  const faults = changes.flatMap(({ partner, target, change }) => {
    const records = unsettled.get(partner) ?? 0
    if (records === 0) return []
    const message = `the new configuration ${change}, but partner ${partner} has ${records} unsettled record(s). Reload again once these records are settled.`
    return [{ target, message }]
  })
  if (faults.length > 0) throw refuseReload(faults)
}
