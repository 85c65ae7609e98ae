import type { Config } from '../../config/index.ts'
import {
  type EntryDocument,
  formatSettingShort,
  pendingToJson,
  type StageDocument,
} from '../../rollout/partner-document.ts'
import { percentOnV3, type Stage, type StageSetting, toSetting } from '../../rollout/stage.ts'
import type { RolloutSnapshot } from '../../rollout/store/read-snapshot.ts'
import type { PartnerRollout, PendingChange } from '../../rollout/store/stage-rows.ts'
import { unknownPartner } from '../target.ts'
import { formatGivenText, formatTable, formatTime } from '../text.ts'
import { type FilePartner, filePartnersOf } from './open-store.ts'

export interface StageView {
  readonly partner: string
  readonly setting: StageSetting
  /** The source of the setting: `file` until the first change of the stage, and `store` afterwards. */
  readonly source: 'file' | 'store'
  /** The revision of the stage. 0 until the first change. */
  readonly revision: number
  readonly sinceMs: number | undefined
  readonly by: string | undefined
  readonly reason: string | undefined
  readonly pending: PendingChange | undefined
  /** The stage in the file if it has no effect, because steps need an approval or because the partner began at another stage. */
  readonly ignored: Stage | undefined
  /** The partner in the configuration file, or `undefined` if the file does not have the partner. */
  readonly file: FilePartner | undefined
}

const unlisted: StageSetting = { stage: 'legacy', percent: 0, always: [], never: [] }

/**
 * Returns the views of all partners: first those of the configuration file in its order, then those that only the journal has. `snapshot`
 * is `undefined` if there is no journal, and then the stages of the file apply.
 */
export function viewStages(config: Config, snapshot: RolloutSnapshot | undefined): readonly StageView[] {
  const files = filePartnersOf(config)
  const names = new Set([...files.keys(), ...[...(snapshot?.partners.keys() ?? [])].sort()])
  return [...names].map((partner) => viewStage(partner, files.get(partner), snapshot))
}

/** Returns the view of one partner. If neither the file nor the journal has the partner, the view has the setting `unlisted`. */
export function viewStage(
  partner: string,
  file: FilePartner | undefined,
  snapshot: RolloutSnapshot | undefined,
): StageView {
  const known: Partial<PartnerRollout> = snapshot?.partners.get(partner) ?? {}
  const { state, pending } = known
  const begin = snapshot?.begins.get(partner) ?? file?.fileStage ?? unlisted
  const source = state === undefined ? 'file' : 'store'
  const ignored = file !== undefined && file.own.stage !== begin.stage ? file.own.stage : undefined
  return {
    partner,
    setting: toSetting(state ?? begin),
    source,
    revision: state?.revision ?? 0,
    sinceMs: state?.sinceMs,
    by: state?.by,
    reason: state?.reason,
    pending,
    ignored: source === 'file' ? ignored : undefined,
    file,
  }
}

/** Returns the view of a partner. Throws `ADP_USAGE` if neither the file nor the journal has the partner. */
export function viewKnown(partner: string, config: Config, snapshot: RolloutSnapshot | undefined): StageView {
  const views = viewStages(config, snapshot)
  const found = views.find((view) => view.partner === partner)
  if (found !== undefined) return found
  throw unknownPartner(
    partner,
    config.partners.map(({ id }) => id),
  )
}

/** Creates the document of a stage, and the notes and lists for its text. Each note is one sentence. */
export function describeStage(view: StageView) {
  const { partner, setting, pending, source, revision, sinceMs, by = null, reason = null } = view
  const document: StageDocument = {
    partner,
    stage: setting.stage,
    percent: percentOnV3(setting),
    unit: 'school',
    revision,
    source,
    since: sinceMs === undefined ? null : formatTime(sinceMs),
    by,
    reason,
    ...(pending === undefined ? {} : { pending: pendingToJson(pending) }),
  }
  return { document, notes: notesOf(view), canary: canaryOf(view) }
}

/**
 * Returns the percentage and the lists that a step to `canary` keeps unless it names other values. A partner that enters `canary` again
 * starts with the percentage in the file, not with its earlier percentage.
 */
export function canaryOf({ setting, file }: StageView): Canary {
  const { stage, percent, always, never } = setting
  return { percent: stage === 'canary' ? percent : (file?.own.canary.percent ?? 0), always, never }
}

type Canary = Omit<StageSetting, 'stage'>
type DescribedStage = ReturnType<typeof describeStage>

export function formatStages(stages: readonly DescribedStage[]): string {
  const table = formatTable(stages, [
    ['partner', ({ document }) => document.partner],
    ['stage', ({ document }) => document.stage],
    ['share', ({ document }) => `${document.percent} %`],
    ['revision', ({ document }) => document.revision || undefined],
    ['source', ({ document }) => document.source],
    ['since', ({ document }) => document.since ?? undefined],
    ['by', ({ document }) => formatGivenText(document.by ?? '')],
  ])
  const notes = stages.flatMap(({ document, notes: own }) =>
    own.map((note) => `${document.partner}: ${note}`),
  )
  return [table, ...(notes.length === 0 ? [] : ['', ...notes])].join('\n')
}

export function formatStage({ document, notes, canary }: DescribedStage): string {
  const { partner, stage, source, revision, since, by, reason } = document
  const given = (reason ?? '') === '' ? '' : `: ${formatGivenText(reason ?? '')}`
  const origin =
    source === 'file'
      ? 'from the configuration file'
      : `revision ${revision}, since ${since}, by ${formatGivenText(by ?? '')}${given}`
  return [`${partner}: ${describeSetting(document)}`, origin, ...listsOf(stage, canary), ...notes].join('\n')
}

/** Formats a setting such as `canary with 5 % of the units on V3`. */
export function describeSetting({ stage, percent }: Pick<StageDocument, 'stage' | 'percent'>): string {
  return stage === 'canary' ? `canary with ${percent} % of the units on V3` : stage
}

export function describePending(pending: ReturnType<typeof pendingToJson>): string {
  const { by, reason, needsApproval, expires } = pending
  const waits = needsApproval
    ? 'waits for the approval of another operator'
    : 'waits for the instances to drain'
  const given = reason === '' ? '' : `, ${formatGivenText(reason)}`
  return `${describeSetting(pending)} ${waits} until ${expires} (by ${formatGivenText(by)}${given})`
}

export function formatHistory(entries: readonly EntryDocument[], partner?: string): string {
  if (entries.length === 0)
    return `The audit trail has no entry${partner === undefined ? '' : ` for ${formatGivenText(partner)}`}.`
  return formatTable(entries, [
    ['time', ({ at }) => at],
    ['by', ({ by }) => formatGivenText(by)],
    ['partner', ({ partner }) => partner ?? undefined],
    ['action', ({ action }) => action],
    ['from', ({ from }) => (from === null ? undefined : formatSettingShort(from))],
    ['to', ({ to }) => (to === null ? undefined : formatSettingShort(to))],
    ['revision', ({ revision }) => revision || undefined],
    ['reason', ({ reason }) => formatGivenText(reason)],
  ])
}

function notesOf({ setting, pending, ignored, file }: StageView): readonly string[] {
  return [
    ...(ignored === undefined
      ? []
      : [
          `the first stage is ${setting.stage}, and the stage ${ignored} in the file has no effect: ` +
            (file?.fileStage.stage === ignored
              ? 'the journal already had a stage of the partner. Change the stage with markbridge rollout set or back'
              : 'rollout.approval is two'),
        ]),
    ...(file === undefined ? ['the configuration file does not have this partner'] : []),
    ...(pending === undefined ? [] : [describePending(pendingToJson(pending))]),
  ]
}

/** Describes the `--always` and `--never` lists. A partner keeps them while it is not at `canary`. */
function listsOf(stage: Stage, { always, never }: Canary): readonly string[] {
  const at = stage === 'canary' ? '' : 'at canary '
  return [
    ...(always.length === 0 ? [] : [`${at}always on V3: ${always.map(formatGivenText).join(', ')}`]),
    ...(never.length === 0 ? [] : [`${at}never on V3: ${never.map(formatGivenText).join(', ')}`]),
  ]
}
