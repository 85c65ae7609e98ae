import { type Config, type PartnerConfig, Secret } from '../config/index.ts'
import type { Partner } from '../partners/index.ts'
import { isGuid } from '../odata/index.ts'
import { createTokenSource, fetchToken, type TokenSource } from '../upstream/index.ts'
import { systemClock } from '../clock.ts'
import { toFileStage } from './to-file-stage.ts'
import { toMapping } from './to-mapping.ts'

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
