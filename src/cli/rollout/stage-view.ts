import type { Config } from '../../config/index.ts'
import { percentOnV3, type Stage, type StageSetting, toSetting } from '../../rollout/stage.ts'
import type { AuditEntry } from '../../rollout/store/audit-trail.ts'
import type { RolloutSnapshot } from '../../rollout/store/read-snapshot.ts'
import type { PartnerRollout, PendingChange } from '../../rollout/store/stage-rows.ts'
import { unknownPartner } from '../target.ts'
import { formatGivenText, formatTable, formatTime } from '../text.ts'
import { type FilePartner, filePartnersOf } from './open-store.ts'

export interface StageView {
  readonly partner: string
  readonly setting: StageSetting
  /** `file` until the first change, while the setting is the one with which the partner began. */
  readonly source: 'file' | 'store'
  /** 0 until the first change. */
  readonly revision: number
  readonly sinceMs: number | undefined
  readonly by: string | undefined
  readonly reason: string | undefined
  readonly pending: PendingChange | undefined
  /** The stage in the file if it has no effect: two people take each step, or the partner began at another stage. */
  readonly ignored: Stage | undefined
  /** `undefined` if the file does not have this partner. */
  readonly file: FilePartner | undefined
}

/** The first setting of a partner that is not in the file. */
const unlisted: StageSetting = { stage: 'legacy', percent: 0, always: [], never: [] }

/** Returns the partners of the file in its order, then those that only the journal has. */
export function viewStages(
  files: ReadonlyMap<string, FilePartner>,
  snapshot: RolloutSnapshot | undefined,
): readonly StageView[] {
  const names = new Set([...files.keys(), ...[...(snapshot?.partners.keys() ?? [])].sort()])
  return [...names].map((partner) => viewStage(partner, files.get(partner), snapshot))
}

/** Returns the view of one partner. `snapshot` is `undefined` if there is no journal, so that the stages of the file apply. */
export function viewStage(
  partner: string,
  file: FilePartner | undefined,
  snapshot: RolloutSnapshot | undefined,
): StageView {
  const known: Partial<PartnerRollout> = snapshot?.partners.get(partner) ?? {}
  const { state, pending } = known
  const begin = snapshot?.begins.get(partner) ?? file?.fileStage ?? unlisted
  const source = state !== undefined ? 'store' : 'file'
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

/** Throws `ADP_USAGE` if neither the file nor the journal has the partner. */
export function viewKnown(partner: string, config: Config, snapshot: RolloutSnapshot | undefined): StageView {
  const files = filePartnersOf(config)
  if (snapshot?.partners.has(partner) === true || files.has(partner))
    return viewStage(partner, files.get(partner), snapshot)
  throw unknownPartner(partner, [...files.keys()])
}

/** Converts a stage to the form that `--json` prints. The names of its members are part of the contract. */
export function stageToJson({ partner, setting, source, revision, ...view }: StageView): object {
  return {
    partner,
    stage: setting.stage,
    percent: percentOnV3(setting),
    unit: 'school',
    revision,
    source,
    since: toTime(view.sinceMs),
    by: view.by ?? null,
    reason: view.reason ?? null,
    ...(view.pending === undefined ? {} : { pending: pendingToJson(view.pending) }),
  }
}

export function pendingToJson({
  needsApproval,
  expiresMs,
  by,
  reason,
  revision,
  ...setting
}: PendingChange): object {
  return { ...settingToJson(setting), revision, by, reason, needsApproval, expires: toTime(expiresMs) }
}

/** Converts a setting; only `canary` has the lists. */
export function settingToJson(setting: StageSetting): object {
  const { stage, always, never } = setting
  return { stage, percent: percentOnV3(setting), ...(stage === 'canary' ? { always, never } : {}) }
}

export function entryToJson({
  entry,
  atMs,
  by,
  partner,
  action,
  from,
  to,
  revision,
  reason,
}: AuditEntry): object {
  return {
    entry,
    at: toTime(atMs),
    by,
    partner: partner === '' ? null : partner,
    action,
    from: from === undefined ? null : settingToJson(from),
    to: to === undefined ? null : settingToJson(to),
    revision,
    reason,
  }
}

const toTime = (ms: number | undefined): string | null =>
  ms === undefined ? null : new Date(ms).toISOString()

export function formatStages(views: readonly StageView[]): string {
  const table = formatTable(views, [
    ['partner', ({ partner }) => partner],
    ['stage', ({ setting }) => setting.stage],
    ['share', ({ setting }) => formatShare(setting)],
    ['revision', ({ revision }) => revision || undefined],
    ['source', ({ source }) => source],
    ['since', ({ sinceMs }) => formatTime(sinceMs)],
    ['by', ({ by = '' }) => formatGivenText(by)],
  ])
  const notes = views.flatMap((view) => notesOf(view).map((note) => `${view.partner}: ${note}`))
  return [table, ...(notes.length === 0 ? [] : ['', ...notes])].join('\n')
}

export function formatStage(view: StageView): string {
  const { partner, setting, revision, by, reason, sinceMs, source } = view
  const given = (reason ?? '') === '' ? '' : `: ${formatGivenText(reason ?? '')}`
  const origin =
    source === 'file'
      ? 'from the configuration file'
      : `revision ${revision}, since ${formatTime(sinceMs)}, by ${formatGivenText(by ?? '')}${given}`
  return [`${partner}: ${describeSetting(setting)}`, origin, ...listsOf(setting), ...notesOf(view)].join('\n')
}

/** Formats a setting such as `canary with 5 % of the units on V3`. */
export function describeSetting(setting: StageSetting): string {
  return setting.stage === 'canary' ? `canary with ${formatShare(setting)} of the units on V3` : setting.stage
}

export function describePending(pending: PendingChange): string {
  const { by, reason, needsApproval, expiresMs } = pending
  const waits = needsApproval
    ? 'waits for the approval of another operator'
    : 'waits for the instances to drain'
  const given = reason === '' ? '' : `, ${formatGivenText(reason)}`
  return `${describeSetting(pending)} ${waits} until ${formatTime(expiresMs)} (by ${formatGivenText(by)}${given})`
}

/** Formats the audit trail; `partner` is the partner that the entries were filtered by. */
export function formatHistory(entries: readonly AuditEntry[], partner?: string): string {
  if (entries.length === 0)
    return `The audit trail has no entry${partner === undefined ? '' : ` for ${formatGivenText(partner)}`}.`
  return formatTable(entries, [
    ['time', ({ atMs }) => formatTime(atMs)],
    ['by', ({ by }) => formatGivenText(by)],
    ['partner', ({ partner }) => partner],
    ['action', ({ action }) => action],
    ['from', ({ from }) => from && formatSetting(from)],
    ['to', ({ to }) => to && formatSetting(to)],
    ['revision', ({ revision }) => revision || undefined],
    ['reason', ({ reason }) => formatGivenText(reason)],
  ])
}

export function notesOf({ setting, pending, ignored, file }: StageView): readonly string[] {
  return [
    ...(ignored === undefined
      ? []
      : [
          `the first stage is ${setting.stage}, and the stage ${ignored} in the file has no effect: ` +
            (file?.fileStage.stage === ignored
              ? 'the journal already had a stage of the partner. Change the stage with markbridge rollout set or back'
              : 'rollout.approval is two'),
        ]),
    ...(file === undefined ? ['the configuration file has no such partner'] : []),
    ...(pending === undefined ? [] : [describePending(pending)]),
  ]
}

/** Describes the lists of units, which a partner keeps until it is at `canary` again. */
function listsOf({ stage, always, never }: StageSetting): readonly string[] {
  const at = stage === 'canary' ? '' : 'at canary '
  return [
    ...(always.length === 0 ? [] : [`${at}always on V3: ${always.map(formatGivenText).join(', ')}`]),
    ...(never.length === 0 ? [] : [`${at}never on V3: ${never.map(formatGivenText).join(', ')}`]),
  ]
}

/** Formats a setting such as `canary 5 %, 2 always, 1 never`. */
function formatSetting(setting: StageSetting): string {
  const { stage, always, never } = setting
  if (stage !== 'canary') return stage
  const lists = [
    ...(always.length === 0 ? [] : [`${always.length} always`]),
    ...(never.length === 0 ? [] : [`${never.length} never`]),
  ]
  return [`canary ${formatShare(setting)}`, ...lists].join(', ')
}

const formatShare = (setting: StageSetting): string => `${percentOnV3(setting)} %`
