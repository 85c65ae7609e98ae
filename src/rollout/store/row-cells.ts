import { type RawBuilder, sql } from 'kysely'

import type { JournalDatabase } from '../../journal/index.ts'
import type { StageRow } from './stage-row.ts'

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

/** The columns of a stage, for `fromStageCells`. */
export const stageColumns = sql`partner, revision, last_revision, setting, since_ms, operator, reason, pending, entry, mac`

/** The row of the columns of a stage. */
export function fromStageCells(cells: readonly Cell[]): StageRow {
  const [partner, revision, lastRevision, setting, sinceMs, operator, reason, pending, entry, mac] = cells
  return {
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
  }
}
