import type { StageSetting } from '../../rollout/stage.ts'
import type { AuditEntry, PendingChange } from '../../rollout/store/rollout-store.ts'
import { shareOf, type StageView } from './stage-view.ts'

/** A stage as `--json` prints it; the names are part of the contract. */
export function toJson({ partner, setting, source, revision, ...view }: StageView): object {
  return {
    partner,
    stage: setting?.stage ?? 'damaged',
    percent: setting === undefined ? null : shareOf(setting),
    unit: 'school',
    revision,
    source: view.storedIn,
    since: toTime(view.sinceMs),
    by: view.by ?? null,
    reason: view.reason ?? null,
    ...(view.pending === undefined ? {} : { pending: pendingToJson(view.pending) }),
    ...(source === 'override' && view.stored !== undefined
      ? { override: { from: view.stored.stage, to: setting?.stage } }
      : {}),
  }
}

/** A change that is not committed yet. */
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

/** A setting; the lists only where they count. */
export function settingToJson(setting: StageSetting): object {
  const { stage, always, never } = setting
  return { stage, percent: shareOf(setting), ...(stage === 'canary' ? { always, never } : {}) }
}

/** A row of the audit trail. */
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
