import type { Advice } from './advise.ts'
import { percentOnV3, type Stage, type StageSetting } from './stage.ts'
import type { AuditEntry } from './store/audit-trail.ts'
import type { PendingChange } from './store/stage-rows.ts'

/** The stage of a partner as `rollout ls --json` prints it. The names of the members are part of the contract. */
export interface StageDocument {
  readonly partner: string
  readonly stage: Stage
  /** The share of the units that V3 serves, in percent. */
  readonly percent: number
  readonly unit: 'school'
  /** The revision of the stage. 0 until the first change. */
  readonly revision: number
  /** `file` as long as the partner has the setting with which it began, and `store` from the first change on. */
  readonly source: 'file' | 'store'
  readonly since: string | null
  readonly by: string | null
  readonly reason: string | null
  /** Absent if there is no change that can still be committed. */
  readonly pending?: PendingDocument | undefined
}

/** The document of a partner that `rollout show --json` prints and the pages of the console show. */
export interface PartnerDocument extends StageDocument {
  readonly advice: Pick<Advice, 'verdict' | 'missing'>
}

type SettingDocument = ReturnType<typeof settingToJson>
type PendingDocument = ReturnType<typeof pendingToJson>
/** An entry of the audit trail as `rollout history --json` prints it. */
export type EntryDocument = ReturnType<typeof entryToJson>

/** Converts a setting to JSON. Only a setting for `canary` has the lists. */
export function settingToJson(setting: StageSetting) {
  const { stage, always, never } = setting
  return { stage, percent: percentOnV3(setting), ...(stage === 'canary' ? { always, never } : {}) }
}

export function pendingToJson({ needsApproval, expiresMs, by, reason, revision, ...setting }: PendingChange) {
  return { ...settingToJson(setting), revision, by, reason, needsApproval, expires: toTime(expiresMs) }
}

export function entryToJson({ entry, atMs, by, partner, action, from, to, revision, reason }: AuditEntry) {
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

const toTime = (ms: number): string => new Date(ms).toISOString()

/** Formats a setting such as `canary 5 %, 2 always, 1 never`. */
export function formatSettingShort({ stage, percent, always = [], never = [] }: SettingDocument): string {
  if (stage !== 'canary') return stage
  const lists = [
    ...(always.length === 0 ? [] : [`${always.length} always`]),
    ...(never.length === 0 ? [] : [`${never.length} never`]),
  ]
  return [`canary ${percent} %`, ...lists].join(', ')
}
