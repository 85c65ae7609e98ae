import { createHmac, timingSafeEqual } from 'node:crypto'

import type { JournalTables } from '../../journal/index.ts'
import { type Stage, type StageSetting, stages } from '../stage.ts'
import type { PartnerRollout, PendingChange, StageState } from './rollout-store.ts'

/** A row of `rollout_stages`. */
export type StageRow = JournalTables['rollout_stages']

/** A pending change as it is kept. */
export interface KeptChange extends PendingChange {
  readonly from: StageSetting
  readonly quietMs: number
}

/** A row that is as it was written. */
export interface KeptStage {
  readonly state: StageState
  readonly lastRevision: number
  readonly pending: KeptChange | undefined
  readonly entry: number
}

/** The MAC of values in their order; `kind` keeps those of different tables apart. */
export function macOf(key: Uint8Array, kind: string, values: readonly (string | number | null)[]): string {
  return createHmac('sha256', key)
    .update(JSON.stringify([kind, ...values]))
    .digest('hex')
}

/** True where a MAC is the expected one. */
export function isMac(expected: string, found: unknown): boolean {
  if (typeof found !== 'string') return false
  const [one, other] = [Buffer.from(expected), Buffer.from(found)]
  return one.length === other.length && timingSafeEqual(one, other)
}

const macOfRow = (key: Uint8Array, row: Omit<StageRow, 'mac'>): string =>
  macOf(key, 'stage', [
    row.partner,
    row.revision,
    row.last_revision,
    row.setting,
    row.since_ms,
    row.operator,
    row.reason,
    row.pending,
    row.entry,
  ])

/** The row of a stage, with its MAC. */
export function toStageRow(key: Uint8Array, { state, lastRevision, pending, entry }: KeptStage): StageRow {
  const row = {
    partner: state.partner,
    revision: state.revision,
    last_revision: lastRevision,
    setting: formatSetting(state),
    since_ms: state.sinceMs,
    operator: state.by,
    reason: state.reason,
    pending: pending === undefined ? null : JSON.stringify(pending),
    entry,
  }
  return { ...row, mac: macOfRow(key, row) }
}

/** Reads a row; undefined: it is not as it was written. */
export function fromStageRow(key: Uint8Array, row: StageRow): KeptStage | undefined {
  if (!isMac(macOfRow(key, row), row.mac)) return undefined
  const setting = parseSetting(row.setting)
  if (setting === undefined) return undefined
  return {
    state: {
      partner: row.partner,
      revision: row.revision,
      ...setting,
      sinceMs: row.since_ms,
      by: row.operator,
      reason: row.reason,
    },
    lastRevision: row.last_revision,
    // The MAC says that this program has written it.
    pending: row.pending === null ? undefined : (JSON.parse(row.pending) as KeptChange),
    entry: row.entry,
  }
}

/** What others see of a stage. */
export function toRollout({ state, pending }: KeptStage): PartnerRollout {
  return {
    // The row of a partner whose first change is pending still.
    state: state.revision === 0 ? undefined : state,
    pending: pending === undefined ? undefined : toPending(pending),
  }
}

export function toPending(kept: KeptChange): PendingChange {
  const { stage, percent, always, never, revision, by, reason, expiresMs, needsApproval } = kept
  return { stage, percent, always, never, revision, by, reason, expiresMs, needsApproval }
}

/** The setting alone. */
export function toSetting({ stage, percent, always, never }: StageSetting): StageSetting {
  return { stage, percent, always, never }
}

export function formatSetting(setting: StageSetting): string {
  return JSON.stringify(toSetting(setting))
}

/** Undefined: it is not a setting. */
export function parseSetting(text: string): StageSetting | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { stage, percent, always, never } = value as Partial<Record<keyof StageSetting, unknown>>
  if (!isStage(stage) || typeof percent !== 'number' || !isList(always) || !isList(never)) return undefined
  return { stage, percent, always, never }
}

const isStage = (value: unknown): value is Stage => stages.some((stage) => stage === value)
const isList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')
