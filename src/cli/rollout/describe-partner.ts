import { latestRuns, liveRunOf, toTrend } from '../../compare/evidence/read-evidence.ts'
import type { Config } from '../../config/index.ts'
import type { LiveResult, PartnerFacts } from '../../console/ports.ts'
import { describeFault } from '../../rollout/store/audit-trail.ts'
import type { OpenedRolloutStore } from '../../rollout/store/rollout-store.ts'
import { findStages, type FoundStages, type GivenAdvice, giveAdvice } from './advice.ts'
import { describeStage, type StageView, viewStages } from './stage-view.ts'

/** Creates the document of a partner for the command line and the console. `found` is `undefined` without a journal. */
export async function describePartner(
  view: StageView,
  config: Config,
  found: FoundStages | undefined,
): Promise<PartnerFacts & { readonly advice: GivenAdvice }> {
  const advice = await giveAdvice(view, config, found)
  const { verdict, missing, conditions, to, guard, guardAlarm } = advice
  const { document, ...others } = describeStage(view)
  return {
    ...others,
    document: { ...document, advice: { verdict, missing } },
    ...{ next: to, conditions, guard, guardAlarm },
    trailFault: found?.trail.broken && describeFault(found.trail.broken),
    advice,
  }
}

export async function describePartners(config: Config, store: OpenedRolloutStore, partner?: string) {
  const found = await findStages(store)
  const views = viewStages(config, found.snapshot).filter((one) => (partner ?? one.partner) === one.partner)
  return Promise.all(views.map((view) => describePartner(view, config, found)))
}

/**
 * Reads the latest results of live comparison for the named partner, or for all partners sorted by name. A result has advice only if it
 * belongs to the current stage and percentage, and the next step needs a comparison.
 */
export async function readLiveResults(
  config: Config,
  store: OpenedRolloutStore,
  partner?: string,
): Promise<readonly LiveResult[]> {
  const counted = await store.evidence.counts(partner)
  const described = await describePartners(config, store, partner)
  const results = latestRuns(counted).map((document) => {
    const now = described.find((one) => one.document.partner === document.partner)
    const own = described.find((one) => liveRunOf(one.document) === document.run)
    return {
      partner: document.partner ?? '',
      document,
      verdict: now?.next && now.document.advice.verdict,
      advice: own?.advice.figures?.comparison === undefined ? undefined : own.document.advice,
      trend: toTrend(counted.filter(({ scope }) => scope.partner === document.partner)),
    }
  })
  return results.sort((one, other) => (one.partner < other.partner ? -1 : 1))
}
