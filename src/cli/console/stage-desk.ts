import { toTrend } from '../../compare/evidence/read-evidence.ts'
import type { Config } from '../../config/index.ts'
import { printPartner } from '../../config/yaml.ts'
import type { PartnerDetails, PartnerStage, StageDesk, Step } from '../../console/ports.ts'
import { nextOf, percentOnV3 } from '../../rollout/stage.ts'
import { describeFault } from '../../rollout/store/audit-trail.ts'
import type { OpenedRolloutStore } from '../../rollout/store/rollout-store.ts'
import { findStages, type FoundStages, type GivenAdvice, giveAdvice, linesOf } from '../rollout/advice.ts'
import { answerOf } from '../rollout/change-result.ts'
import { filePartnersOf } from '../rollout/open-store.ts'
import { describePending, notesOf, type StageView, viewStages } from '../rollout/stage-view.ts'
import { approveStep, goBack, setStage, type StageDesk as Desk } from '../rollout/take-step.ts'

/** Provides the functions of `rollout` on a store that stays open. Aborting `signal` withdraws steps that are waiting. */
export function createStageDesk(
  config: () => Config,
  openStore: () => Promise<OpenedRolloutStore>,
  signal: AbortSignal,
): StageDesk {
  const describe = async (view: StageView, found: FoundStages) => {
    const advice = await giveAdvice(view, config(), found)
    const trend = toTrend(await found.store.evidence.counts(view.partner))
    return { stage: { ...toStage(view, advice), trend }, advice }
  }
  const read = async () => {
    const found = await findStages(await openStore())
    return { found, views: viewStages(filePartnersOf(config()), found.snapshot) }
  }
  return {
    list: async () => {
      const { found, views } = await read()
      const { broken } = found.trail
      const trailFault = broken && describeFault(broken)
      const described = await Promise.all(views.map((view) => describe(view, found)))
      return described.map(({ stage }) => ({ ...stage, trailFault }))
    },
    show: async (partner) => {
      const { found, views } = await read()
      const view = views.find((one) => one.partner === partner)
      if (view === undefined) return undefined
      const { stage, advice } = await describe(view, found)
      return { ...stage, ...detailsOf(view), evidence: advice.figures ? linesOf(advice.figures) : [] }
    },
    change: async (actor, partner, step) => {
      const desk: Desk = { config: config(), store: await openStore(), actor: () => actor, signal }
      const { result } = await take(desk, partner, step)
      const { status = 0, document, text } = answerOf(result)
      // Status 4 means that the step waits for an approval.
      return { isDone: status === 0 || status === 4, text: text(), json: document }
    },
    history: async ({ partner, limit }) =>
      (await (await openStore()).history({ partner, limit })).toReversed(),
    recordAction: async (...given) => (await openStore()).recordAction(...given),
  }
}

function take(desk: Desk, partner: string, step: Step) {
  switch (step.kind) {
    case 'set':
      return setStage(desk, partner, step.stage, step)
    case 'back':
      return goBack(desk, partner, step)
    case 'approve':
      return approveStep(desk, partner, step)
  }
}

function toStage(view: StageView, advice: GivenAdvice): Omit<PartnerStage, 'trend'> {
  const { partner, setting, source, revision, sinceMs, by, reason, pending } = view
  return {
    ...{ partner, source, revision, sinceMs, by, reason },
    stage: setting.stage,
    percent: percentOnV3(setting),
    notes: notesOf(view),
    pending: pending && {
      text: describePending(pending),
      by: pending.by,
      needsApproval: pending.needsApproval,
    },
    next: nextOf(setting.stage),
    advice: { verdict: advice.verdict, missing: advice.missing },
    guardAlarm: advice.guardAlarm,
  }
}

function detailsOf({ setting, file }: StageView): Pick<PartnerDetails, 'canary' | 'configuration'> {
  const first = file?.own.canary
  const percent = setting.stage === 'canary' ? setting.percent : first?.percent
  return {
    canary: {
      percent: percent ?? 0,
      always: setting.always,
      never: setting.never,
    },
    configuration: file && printPartner(file.own),
  }
}
