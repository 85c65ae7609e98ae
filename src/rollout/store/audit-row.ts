import type { JournalTables } from '../../journal/index.ts'
import { type AuditAction, auditActions, type AuditEntry } from './rollout-store.ts'
import { formatSetting, macOf, parseSetting } from './stage-row.ts'

/** A row of `rollout_audit`. */
export type AuditRow = JournalTables['rollout_audit']

export function toAuditRow(entry: AuditEntry): Omit<AuditRow, 'mac'> {
  return {
    entry: entry.entry,
    at_ms: entry.atMs,
    operator: entry.by,
    partner: entry.partner,
    action: entry.action,
    setting_from: entry.from === undefined ? null : formatSetting(entry.from),
    setting_to: entry.to === undefined ? null : formatSetting(entry.to),
    revision: entry.revision,
    reason: entry.reason,
  }
}

export function fromAuditRow(row: AuditRow): AuditEntry {
  return {
    entry: row.entry,
    atMs: row.at_ms,
    by: row.operator,
    partner: row.partner,
    // One that this version does not know is shown as it is.
    action: auditActions.find((action) => action === row.action) ?? (row.action as AuditAction),
    from: row.setting_from === null ? undefined : parseSetting(row.setting_from),
    to: row.setting_to === null ? undefined : parseSetting(row.setting_to),
    revision: row.revision,
    reason: row.reason,
  }
}

/** The MAC of a row, over that of the row before. */
export function macOfEntry(key: Uint8Array, previous: string, row: Omit<AuditRow, 'mac'>): string {
  return macOf(key, 'audit', [
    previous,
    row.entry,
    row.at_ms,
    row.operator,
    row.partner,
    row.action,
    row.setting_from,
    row.setting_to,
    row.revision,
    row.reason,
  ])
}
