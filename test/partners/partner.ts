import type { Partner, PartnerMatch } from '../../src/partners/partner.ts'

/** Creates a partner with the simplest settings. */
export function partner(id: string, match: PartnerMatch, subscriptionKey?: () => string): Partner {
  const mapping = {
    eventType: 'e',
    codeType: 'c',
    changeProcessName: null,
    unmappedFields: 'report',
  } as const
  return {
    id,
    match,
    guard: 'back',
    fileStage: { stage: 'v3', percent: 0, always: [], never: [] },
    unit: { claim: 'organisation', header: undefined },
    v2: undefined,
    identityClaims: [],
    layout: 'flat',
    errorMessages: undefined,
    serviceHosts: undefined,
    dataEnvelope: false,
    msgtypeResponse: false,
    mismatch: 'post',
    mapping,
    reads: {
      needsRecordedBy: true,
      unmarkedCodes: [],
      histories: false,
    },
    unmarkedLetters: [],
    bodyProfile: 'full',
    concurrency: 1,
    batch: undefined,
    budgetMs: 1,
    readBackAfterMs: [],
    batchRecordMs: 1,
    subscriptionKey,
    callsPerSecond: undefined,
    compare: { percent: 100, settleMs: 30_000 },
    checkV2Percent: 0,
    tokens: undefined,
  }
}
