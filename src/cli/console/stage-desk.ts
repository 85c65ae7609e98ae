import type { Config } from '../../config/index.ts'
import { printPartner } from '../../config/yaml.ts'
import type { StageDesk } from '../../console/ports.ts'
import { entryToJson } from '../../rollout/partner-document.ts'
import type { OpenedRolloutStore } from '../../rollout/store/rollout-store.ts'
import { answerOf } from '../rollout/change-result.ts'
import { describePartners } from '../rollout/describe-partner.ts'
import { findSchoolSide } from '../rollout/school-side.ts'
import { viewKnown } from '../rollout/stage-view.ts'
import { takeStep } from '../rollout/take-step.ts'

/** Provides the operations of the `rollout` commands on a store that stays open. If `signal` aborts, waiting steps are withdrawn. */
export function createStageDesk(
  config: () => Config,
  openStore: () => Promise<OpenedRolloutStore>,
  signal: AbortSignal,
): StageDesk {
  return {
    list: async (partner) => describePartners(config(), await openStore(), partner),
    configuration: (partner) => {
      const own = config().partners.find(({ id }) => id === partner)
      return own && printPartner(own)
    },
    take: async (actor, partner, step) => {
      const desk = { config: config(), store: await openStore(), actor: () => actor, signal }
      const { status = 0, document, text } = answerOf(await takeStep(desk, partner, step))
      // Status 4 means that the step waits for an approval, which is no failure.
      return { isDone: status === 0 || status === 4, text: text(), json: document }
    },
    sideOf: async (partner, school) => {
      const store = await openStore()
      return findSchoolSide(viewKnown(partner, config(), await store.snapshot()), school, store)
    },
    history: async (filter) => {
      const entries = await (await openStore()).history(filter)
      return entries.map(entryToJson).reverse()
    },
    recordAction: async (...given) => (await openStore()).recordAction(...given),
  }
}
