import type { Config } from '../config/index.ts'
import type { OpenedRolloutStore } from '../rollout/store/open-rollout-store.ts'
import type { RolloutSnapshot } from '../rollout/store/rollout-store.ts'
import { formatAdvice } from './rollout/advice-text.ts'
import { adviceToJson, fullAdviceToJson, type GivenAdvice, giveAdvice } from './rollout/give-advice.ts'
import {
  expectMayLook,
  filePartnersOf,
  hasNoJournal,
  loadTarget,
  openTargetStore,
  type RolloutTarget,
} from './rollout/open-target.ts'
import { entryToJson, toJson } from './rollout/rollout-json.ts'
import { formatHistory, formatStage, formatStages, formatVerified } from './rollout/rollout-text.ts'
import { type StageView, viewKnown, viewStages } from './rollout/stage-view.ts'

export type { RolloutTarget } from './rollout/open-target.ts'

/** The flags of `rollout history`. */
export interface HistoryOptions extends RolloutTarget {
  readonly limit?: number
}

/** Lists the stages of all partners; returns 1 where one is damaged. */
export async function listStages(options: RolloutTarget): Promise<number> {
  const config = await loadTarget(options)
  const { snapshot } = await look(config, ({ snapshot: seen }) => Promise.resolve({ snapshot: seen }))
  const views = viewStages(filePartnersOf(config), snapshot)
  print(options, { partners: views.map(toJson) }, () => formatStages(views))
  reportTrail(snapshot)
  return views.every(isSound) ? 0 : 1
}

/** Shows one partner with the advice on its next step; returns 1 where its stage is damaged. */
export async function showStage(partner: string, options: RolloutTarget): Promise<number> {
  const { view, advice } = await lookAt(partner, options)
  print(
    options,
    { ...toJson(view), advice: adviceToJson(advice) },
    () => `${formatStage(view)}\n\n${formatAdvice(advice, false)}`,
  )
  return isSound(view) ? 0 : 1
}

/** Says whether the next step is advised, with the figures. */
export async function adviseStep(partner: string, options: RolloutTarget): Promise<number> {
  const { view, advice } = await lookAt(partner, options)
  print(
    options,
    fullAdviceToJson(partner, advice),
    () => `${formatStage(view)}\n\n${formatAdvice(advice, true)}`,
  )
  return 0
}

/** Prints the audit trail. */
export async function printHistory(partner: string | undefined, options: HistoryOptions): Promise<number> {
  const config = await loadTarget(options)
  const { limit } = options
  const entries = await withStore(config, (store) =>
    store.history({
      ...(partner === undefined ? {} : { partner }),
      ...(limit === undefined ? {} : { limit }),
    }),
  )
  print(options, { entries: entries.map(entryToJson) }, () => formatHistory(entries))
  return 0
}

/** Checks the audit trail; returns 1 where it is broken. */
export async function verifyTrail(options: RolloutTarget): Promise<number> {
  const verified = await withStore(await loadTarget(options), (store) => store.verify())
  const { entries, keyed, keyedFrom, broken } = verified
  print(options, { entries, keyed, keyedFrom: keyedFrom ?? null, broken: broken ?? null }, () =>
    formatVerified(verified),
  )
  return broken === undefined ? 0 : 1
}

interface Seen {
  readonly view: StageView
  readonly advice: GivenAdvice
}

async function lookAt(partner: string, options: RolloutTarget): Promise<Seen> {
  const config = await loadTarget(options)
  return look(config, async ({ snapshot, store }) => {
    const view = viewKnown(partner, config, snapshot)
    reportTrail(snapshot)
    return { view, advice: await giveAdvice(view, config, snapshot, store) }
  })
}

function reportTrail(snapshot: RolloutSnapshot | undefined): void {
  if (snapshot !== undefined && snapshot.trail === undefined)
    console.error(
      'markbridge: the audit trail is damaged, so no stage goes forward: markbridge rollout verify.',
    )
}

/** Runs `work` with all stages; without a journal those of the file are all there is. */
async function look<Result>(
  config: Config,
  work: (found: {
    readonly snapshot: RolloutSnapshot | undefined
    readonly store: OpenedRolloutStore | undefined
  }) => Promise<Result>,
): Promise<Result> {
  if (!hasNoJournal(config))
    return withStore(config, async (store) => work({ snapshot: await store.snapshot(), store }))
  console.error('markbridge: the configured journal is none, so stages are those of the configuration file.')
  return work({ snapshot: undefined, store: undefined })
}

async function withStore<Result>(
  config: Config,
  work: (store: OpenedRolloutStore) => Promise<Result>,
): Promise<Result> {
  expectMayLook(config)
  const store = await openTargetStore(config)
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

const isSound = ({ setting }: StageView): boolean => setting !== undefined

function print({ json }: RolloutTarget, value: unknown, text: () => string): void {
  console.log(json === true ? JSON.stringify(value) : text())
}
