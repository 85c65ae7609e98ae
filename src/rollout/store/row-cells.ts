import { type RawBuilder, sql } from 'kysely'

import type { JournalDatabase } from '../../journal/index.ts'
import { fromStageRow, type KeptStage } from './stage-row.ts'

/** A column as JSON has it. */
export type Cell = string | number | null

/**
 * Columns as one JSON array, as text. A number that no row ever has is read as another one, where the driver would refuse the whole
 * statement: its MAC tells that it is wrong.
 */
export const toCells = (
  { dialect }: Pick<JournalDatabase, 'dialect'>,
  columns: RawBuilder<unknown>,
): RawBuilder<string> =>
  sql<string>`cast(${sql.raw(dialect === 'sqlite' ? 'json_array' : 'json_build_array')}(${columns}) as text)`

export const parseCells = (content: string): readonly Cell[] => JSON.parse(content) as readonly Cell[]

/** The columns of a row of `rollout_stages`, with the number of the last row of the trail about its partner; for `fromStageCells`. */
export const stageColumns = sql`partner, revision, last_revision, setting, since_ms, operator, reason, pending, entry, mac,
  (select a.entry from rollout_audit as a where a.partner = rollout_stages.partner and a.action <> 'hold' order by a.entry desc limit 1)`

/** Reads a stage; undefined: its row is not as it was written, or is an older one than the trail has. */
export function fromStageCells(
  { key }: Pick<JournalDatabase['macKey'], 'key'>,
  cells: readonly Cell[],
): KeptStage | undefined {
  const [partner, revision, lastRevision, setting, sinceMs, operator, reason, pending, entry, mac, last] =
    cells
  const kept = fromStageRow(key, {
    partner: String(partner),
    revision: Number(revision),
    last_revision: Number(lastRevision),
    setting: String(setting),
    since_ms: Number(sinceMs),
    operator: String(operator),
    reason: String(reason),
    pending: typeof pending === 'string' ? pending : null,
    entry: Number(entry),
    mac: String(mac),
  })
  return kept !== undefined && kept.entry >= Number(last) ? kept : undefined
}
