import { createStageFile } from '../../app/stages.ts'
import type { Config } from '../../config/index.ts'
import { encodeKnown, nothingKnown } from '../../rollout/live/known-stages.ts'
import { judgeStep, toSetting } from '../../rollout/stage.ts'
import type { OpenedRolloutStore } from '../../rollout/store/rollout-store.ts'
import type { RolloutSnapshot } from '../../rollout/store/read-snapshot.ts'
import type { Verified } from '../../rollout/store/audit-trail.ts'
import { adviceToJson, formatAdvice, fullAdviceToJson, type GivenAdvice, giveAdvice } from './advice.ts'
import { filePartnersOf, hasNoJournal, useStore, readStateFile, readStore } from './open-store.ts'
import { type Answer, formatHints } from '../text.ts'
import type { Target } from '../options.ts'
import { loadTarget } from '../target.ts'
import {
  entryToJson,
  formatHistory,
  formatStage,
  formatStages,
  stageToJson,
  type StageView,
  viewKnown,
  viewStage,
  viewStages,
} from './stage-view.ts'

interface HistoryOptions extends Target {
  readonly limit?: number
}

/** Lists the stages of all partners. The exit status is 1 if a stage is damaged. */
export async function listStages(options: Target): Promise<Answer> {
  const config = await loadTarget(options)
  const snapshot = await look(config, ({ snapshot: found }) => Promise.resolve(found))
  const views = viewStages(filePartnersOf(config), snapshot)
  reportTrail(snapshot, options)
  return {
    document: { partners: views.map(stageToJson) },
    text: () => formatStages(views),
    status: views.every(isSound) ? 0 : 1,
  }
}

/** Shows a partner's stage and the advice on its next step. The exit status is 1 if the stage is damaged. */
export async function showStage(partner: string, options: Target): Promise<Answer> {
  const { view, advice } = await lookAt(partner, options)
  return {
    document: { ...stageToJson(view), advice: adviceToJson(advice) },
    text: () => `${formatStage(view)}\n\n${formatAdvice(advice, false)}`,
    status: isSound(view) ? 0 : 1,
  }
}

export async function adviseStep(partner: string, options: Target): Promise<Answer> {
  const { view, advice } = await lookAt(partner, options)
  return {
    document: fullAdviceToJson(partner, advice),
    text: () => `${formatStage(view)}\n\n${formatAdvice(advice, true)}`,
  }
}

export async function readHistory(partner: string | undefined, options: HistoryOptions): Promise<Answer> {
  const { limit } = options
  const entries = await readStore(await loadTarget(options), (store) => store.history({ partner, limit }))
  return { document: { entries: entries.map(entryToJson) }, text: () => formatHistory(entries, partner) }
}

/** Checks the audit trail. The exit status is 1 if it is broken. */
export async function verifyTrail(options: Target): Promise<Answer> {
  const verified = await readStore(await loadTarget(options), (store) => store.verify())
  const { entries, keyed, broken } = verified
  return {
    // A trail is keyed from its first entry on, or not at all.
    document: { entries, keyed, keyedFrom: keyed ? 1 : null, broken: broken ?? null },
    text: () => formatVerified(verified),
    status: broken === undefined ? 0 : 1,
  }
}

function formatVerified({ entries, keyed, broken }: Verified): string {
  if (broken !== undefined)
    return `The audit trail is broken at entry ${broken.entry}: ${broken.what}. Compare it with a backup of the journal.`
  const found = `${entries} ${entries === 1 ? 'entry' : 'entries'}. No entry was changed or removed.`
  return keyed
    ? found
    : `${found} The trail began without journal.keys, so a user who can write its database could have forged the trail.`
}

interface Found {
  readonly snapshot: RolloutSnapshot | undefined
  readonly store: OpenedRolloutStore | undefined
}

/** Runs `work` with the stages of the journal, or without any if there is no journal, so that the stages of the file apply. */
async function look<Result>(config: Config, work: (found: Found) => Promise<Result>): Promise<Result> {
  if (!hasNoJournal(config))
    return readStore(config, async (store) => work({ snapshot: await store.snapshot(), store }))
  console.error('markbridge: the configured journal is none, so the stages of the configuration file apply.')
  return work({ snapshot: undefined, store: undefined })
}

async function lookAt(
  partner: string,
  options: Target,
): Promise<{ readonly view: StageView; readonly advice: GivenAdvice }> {
  const config = await loadTarget(options)
  return look(config, async ({ snapshot, store }) => {
    const view = viewKnown(partner, config, snapshot)
    reportTrail(snapshot, options)
    return { view, advice: await giveAdvice(view, config, snapshot, store) }
  })
}

function reportTrail(snapshot: RolloutSnapshot | undefined, given: Target): void {
  if (snapshot !== undefined && snapshot.trail === undefined)
    console.error(
      formatHints(
        'markbridge: the audit trail is damaged, so no partner can go forward. Run markbridge rollout verify.',
        given,
      ),
    )
}

const isSound = ({ setting }: StageView): boolean => setting !== undefined

export interface AdoptedStages {
  /** True if the end of the audit trail was damaged and was replaced by the last of its rows. */
  readonly repaired: boolean
  /** The partners that were taken back to the stage in the state file. */
  readonly lowered: readonly string[]
  /** The partners whose stored stage is damaged. They are served again once their stage is set. */
  readonly damaged: readonly string[]
}

/**
 * Repairs the end of the audit trail of an accepted journal, and takes back each partner that has a lower stage in the state file of this
 * machine, so that a step back is not undone. Then removes the lost trail from the state file.
 */
export async function adoptStages(config: Config): Promise<AdoptedStages> {
  const kept = await readStateFile(config)
  const adopt = async (store: OpenedRolloutStore): Promise<AdoptedStages> => {
    const repaired = await store.repair()
    const lowered: string[] = []
    const snapshot = await store.snapshot()
    const files = filePartnersOf(config)
    for (const [partner, { setting: to }] of kept?.view?.partners ?? []) {
      const { setting: from, revision } = viewStage(partner, files.get(partner), snapshot)
      if (to === undefined || from === undefined || judgeStep(from, to).direction !== 'back') continue
      const by = { by: 'journal adopt', reason: 'the state file has a lower stage' }
      const change = { partner, expectedRevision: revision, from, to: toSetting(to), ...by }
      if ((await store.apply(change, 'back')).kind === 'applied') lowered.push(partner)
    }
    return { repaired, lowered, damaged: [...snapshot.damaged].sort() }
  }
  // The state file has the trail that was lost, which this one does not continue.
  const adopted = await useStore(config, adopt, { goesOn: false })
  if (kept !== undefined) await createStageFile(config.journal).save(encodeKnown(nothingKnown))
  return adopted
}
