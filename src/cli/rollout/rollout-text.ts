import type { StageSetting } from '../../rollout/stage.ts'
import type { AuditEntry, PendingChange, Verified } from '../../rollout/store/rollout-store.ts'
import { formatGivenText, formatTable, formatTime } from '../text-table.ts'
import { shareOf, type StageView } from './stage-view.ts'

/** Stages as a table, one line each, with what needs an explanation below. */
export function formatStages(views: readonly StageView[]): string {
  const rows = views.map((view) => [
    view.partner,
    view.setting?.stage ?? 'damaged',
    view.setting === undefined ? '' : formatShare(view.setting),
    view.revision === 0 ? '' : String(view.revision),
    view.source,
    formatTime(view.sinceMs),
    formatGivenText(view.by ?? ''),
  ])
  const table = formatTable([['partner', 'stage', 'share', 'revision', 'source', 'since', 'by'], ...rows])
  const notes = views.flatMap((view) => notesOf(view).map((note) => `${view.partner}: ${note}`))
  return [table, ...(notes.length === 0 ? [] : ['', ...notes])].join('\n')
}

/** One stage with all that is known of it. */
export function formatStage(view: StageView): string {
  const { partner, setting, revision, by, reason, sinceMs, storedIn } = view
  const given = (reason ?? '') === '' ? '' : `: ${formatGivenText(reason ?? '')}`
  const origin =
    storedIn === 'file'
      ? 'from the configuration file'
      : `revision ${revision}, since ${formatTime(sinceMs)}, by ${formatGivenText(by ?? '')}${given}`
  const lists = setting === undefined ? [] : listsOf(setting)
  return [
    setting === undefined ? `${partner}: damaged` : `${partner}: ${describe(setting)}`,
    ...(setting === undefined ? [] : [origin]),
    ...lists,
    ...notesOf(view),
  ].join('\n')
}

/** `canary with 5 % of the units on V3` */
export function describe(setting: StageSetting): string {
  return setting.stage === 'canary' ? `canary with ${formatShare(setting)} of the units on V3` : setting.stage
}

/** A change that is not made yet. */
export function describePending(pending: PendingChange): string {
  const { by, reason, needsApproval, expiresMs } = pending
  const waits = needsApproval
    ? 'waits for the approval of another operator'
    : 'waits for the instances to drain'
  const given = reason === '' ? '' : `, ${formatGivenText(reason)}`
  return `${describe(pending)} ${waits} until ${formatTime(expiresMs)} (by ${formatGivenText(by)}${given})`
}

/** The audit trail, one line for each row. */
export function formatHistory(entries: readonly AuditEntry[]): string {
  if (entries.length === 0) return 'The audit trail has no entry.'
  const rows = entries.map((one) => [
    formatTime(one.atMs),
    formatGivenText(one.by),
    one.partner,
    one.action,
    one.from === undefined ? '' : formatSetting(one.from),
    one.to === undefined ? '' : formatSetting(one.to),
    one.revision === 0 ? '' : String(one.revision),
    formatGivenText(one.reason),
  ])
  return formatTable([['time', 'by', 'partner', 'action', 'from', 'to', 'revision', 'reason'], ...rows])
}

/** What the check of the audit trail has found. */
export function formatVerified({ entries, keyed, keyedFrom, broken }: Verified): string {
  if (broken !== undefined)
    return `The audit trail is broken at entry ${broken.entry}: ${broken.what}. Compare it with a backup of the journal.`
  const found = `${entries} ${entries === 1 ? 'entry' : 'entries'}, each as it was written.`
  if (!keyed)
    return `${found} The journal has no keys, so this does not exclude a change by a user who can write its database.`
  return keyedFrom === undefined || keyedFrom <= 1
    ? found
    : `${found} Those before entry ${keyedFrom} were written before the journal had keys.`
}

function notesOf({
  source,
  stored,
  setting,
  storedIn,
  pending,
  ignored,
  file,
}: StageView): readonly string[] {
  return [
    ...(setting === undefined
      ? [
          'the stage in the journal is not as it was written. markbridge rollout verify says more; markbridge rollout back replaces it.',
        ]
      : []),
    ...(source === 'override' && stored !== undefined
      ? [
          `stageOverride of the file lowers ${describe(stored)} of the ${storedIn === 'store' ? 'journal' : 'file'} to ${setting?.stage ?? ''}`,
        ]
      : []),
    ...(ignored === undefined
      ? []
      : [
          `begins at ${stored?.stage ?? ''} and not at ${ignored} of the file, since ` +
            (file?.fileStage.stage === ignored
              ? 'it began there: markbridge rollout set takes it forward'
              : 'rollout.approval is two'),
        ]),
    ...(file === undefined ? ['the configuration file has no such partner'] : []),
    ...(pending === undefined ? [] : [describePending(pending)]),
  ]
}

/** The lists of units, which a partner keeps until its next `canary`. */
function listsOf({ stage, always, never }: StageSetting): readonly string[] {
  const at = stage === 'canary' ? '' : 'at canary '
  return [
    ...(always.length === 0 ? [] : [`${at}always on V3: ${always.map(formatGivenText).join(', ')}`]),
    ...(never.length === 0 ? [] : [`${at}never on V3: ${never.map(formatGivenText).join(', ')}`]),
  ]
}

/** `canary 5 %, 2 always, 1 never` */
function formatSetting(setting: StageSetting): string {
  const { stage, always, never } = setting
  if (stage !== 'canary') return stage
  const lists = [
    ...(always.length === 0 ? [] : [`${always.length} always`]),
    ...(never.length === 0 ? [] : [`${never.length} never`]),
  ]
  return [`canary ${formatShare(setting)}`, ...lists].join(', ')
}

const formatShare = (setting: StageSetting): string => `${shareOf(setting)} %`
