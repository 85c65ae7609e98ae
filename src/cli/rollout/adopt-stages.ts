import { createStageFile, markFileOf, stageFileOf, stageJournalOf } from '../../app/stage-file.ts'
import { type Config, journalKeysOf, journalUrlOf } from '../../config/index.ts'
import { encodeSnapshot } from '../../rollout/live/kept-snapshot.ts'
import { judgeStep } from '../../rollout/steps.ts'
import { openRolloutStore } from '../../rollout/store/open-rollout-store.ts'
import { toSetting } from '../../rollout/store/stage-row.ts'
import { filePartnersOf, readKept } from './open-target.ts'
import { viewStage } from './stage-view.ts'

/**
 * Takes partners back in an accepted journal that the state file of this machine has at a lower stage: one that was taken back stays back.
 * After that the file knows nothing of the trail that was lost. Returns the partners. Errors: those of `openRolloutStore`.
 */
export async function adoptStages(config: Config): Promise<readonly string[]> {
  const { journal } = config
  const kept = await readKept(config)
  if (kept === undefined) return []
  const store = await openRolloutStore({
    url: journalUrlOf(journal),
    keys: journalKeysOf(journal),
    markFile: markFileOf(journal),
  })
  const lowered: string[] = []
  try {
    const snapshot = await store.snapshot()
    const files = filePartnersOf(config)
    for (const [partner, { setting: to }] of kept.view?.partners ?? []) {
      const { stored: from, revision } = viewStage(partner, files.get(partner), snapshot)
      if (to === undefined || from === undefined) continue
      if (judgeStep(from, to, { journalIsDurable: true }).direction !== 'back') continue
      const by = { by: 'journal adopt', reason: 'the state file has a lower stage' }
      const change = { partner, expectedRevision: revision, from, to: toSetting(to), ...by }
      const { kind } = await store.apply(change, 'back')
      if (kind === 'applied') lowered.push(partner)
    }
  } finally {
    await store.close()
  }
  const { overrides } = kept
  await createStageFile(stageFileOf(journal), stageJournalOf(journal)).save(
    encodeSnapshot({ view: undefined, clean: [], overrides }),
  )
  return lowered
}
