import { createStageFile } from '../../app/stages.ts'
import type { Config } from '../../config/index.ts'
import { encodeKnown, nothingKnown } from '../../rollout/live/known-stages.ts'
import { judgeStep, toSetting } from '../../rollout/stage.ts'
import { describeFault } from '../../rollout/store/audit-trail.ts'
import { entryToJson } from '../../rollout/partner-document.ts'
import { findSchoolSide } from './school-side.ts'
import { findStages, formatAdvice, type FoundStages, fullAdviceToJson, linesOf } from './advice.ts'
import { describePartner } from './describe-partner.ts'
import { filePartnersOf, hasNoJournal, useStore, readStageFile, readStore } from './open-store.ts'
import { type Answer, formatCounted } from '../text.ts'
import type { Target } from '../options.ts'
import { loadTarget } from '../target.ts'
import {
  describeStage,
  formatHistory,
  formatStage,
  formatStages,
  viewKnown,
  viewStage,
  viewStages,
} from './stage-view.ts'

interface HistoryOptions extends Target {
  readonly limit?: number
}

export async function listStages(options: Target): Promise<Answer> {
  const views = await look(options, (config, found) => viewStages(config, found?.snapshot))
  const stages = views.map(describeStage)
  return {
    document: { partners: stages.map(({ document }) => document) },
    text: () => formatStages(stages),
  }
}

interface ShowOptions extends Target {
  readonly school?: string
}

export async function showStage(partner: string, options: ShowOptions): Promise<Answer> {
  const { school: named } = options
  return look(options, async (config, found) => {
    const view = viewKnown(partner, config, found?.snapshot)
    const described = await describePartner(view, config, found)
    const school = named === undefined ? undefined : await findSchoolSide(view, named, found?.store)
    const lines = [
      formatStage(described),
      ...(school ? ['', school.text] : []),
      '',
      formatAdvice(described.advice),
    ]
    return { document: { ...described.document, school }, text: () => lines.join('\n') }
  })
}

export async function adviseStep(partner: string, options: Target): Promise<Answer> {
  const found = await describeKnown(partner, options)
  const { figures } = found.advice
  const lines = figures === undefined ? [] : ['', ...linesOf(figures)]
  return {
    document: fullAdviceToJson(partner, found.advice),
    text: () => [formatStage(found), '', formatAdvice(found.advice), ...lines].join('\n'),
  }
}

export async function readHistory(partner: string | undefined, options: HistoryOptions): Promise<Answer> {
  const { limit } = options
  const found = await readStore(await loadTarget(options), (store) => store.history({ partner, limit }))
  const entries = found.map(entryToJson)
  return { document: { entries }, text: () => formatHistory(entries, partner) }
}

/** Checks the audit trail. The exit status is 1 if the trail is broken. */
export async function verifyTrail(options: Target): Promise<Answer> {
  const { head, broken } = await readStore(await loadTarget(options), (store) => store.verify())
  return {
    document: { entries: head.entries, head: head.hash, broken: broken ?? null },
    text: () =>
      broken === undefined
        ? `The audit trail is one chain of ${formatCounted(head.entries, 'entry', 'entries')}. If the whole chain was rewritten, only a certificate or a stage file shows it.`
        : `The audit trail is ${describeFault(broken)} Compare it with a backup of the journal.`,
    status: broken === undefined ? 0 : 1,
  }
}

/**
 * Runs `work` with the stages in the journal, or with `undefined` if the stages of the file apply. Prints a warning if the audit trail is
 * broken.
 */
async function look<Result>(
  options: Target,
  work: (config: Config, found: FoundStages | undefined) => Result | Promise<Result>,
): Promise<Result> {
  const config = await loadTarget(options)
  if (hasNoJournal(config)) {
    say('journal.url is none, so the stages of the configuration file apply.')
    return work(config, undefined)
  }
  return readStore(config, async (store) => {
    const found = await findStages(store)
    const { broken } = found.trail
    if (broken !== undefined) say(`the audit trail of stages is ${describeFault(broken)}`)
    return work(config, found)
  })
}

const say = (text: string): void => console.error(`markbridge: ${text}`)

const describeKnown = (partner: string, options: Target) =>
  look(options, (config, found) =>
    describePartner(viewKnown(partner, config, found?.snapshot), config, found),
  )

export interface AdoptedStages {
  readonly lowered: readonly string[]
}

/**
 * Moves each partner back to the stage in this machine's stage file if that stage is lower, because an adopted journal may have lost a step
 * back. Then removes the lost audit trail from the stage file.
 */
export async function adoptStages(config: Config): Promise<AdoptedStages> {
  const kept = await readStageFile(config)
  const lowered = await useStore(config, async (store) => {
    const partners: string[] = []
    const snapshot = await store.snapshot()
    const files = filePartnersOf(config)
    for (const [partner, { setting: to }] of kept?.view?.partners ?? []) {
      const { setting: from, revision } = viewStage(partner, files.get(partner), snapshot)
      if (to === undefined || judgeStep(from, to).direction !== 'back') continue
      const by = { by: 'journal adopt', reason: 'the stage file has a lower stage' }
      const change = { partner, expectedRevision: revision, from, to: toSetting(to), ...by }
      if ((await store.apply(change, 'back')).kind === 'applied') partners.push(partner)
    }
    return partners
  })
  if (kept !== undefined) await createStageFile(config.journal).save(encodeKnown(nothingKnown))
  return { lowered }
}
