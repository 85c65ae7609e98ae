import type { DatabaseSync } from 'node:sqlite'
import type { RollState } from '../seed/plan.ts'
import { integer, integerOrNull, text } from './columns.ts'

/** A learner as the register knows it. */
export interface RosterEntry {
  readonly number: number
  readonly externalId: string
  readonly state: RollState
  /** Day numbers of the enrolment; a learner who has not left has no last day. */
  readonly admissionDay: number
  readonly leavingDay: number | null
}

/** All learners, held in memory: every write asks for one of them. */
export interface Roster {
  readonly entries: readonly RosterEntry[]
  byNumber(number: number): RosterEntry | undefined
  /** The learner with a guid in lower case. */
  byId(externalId: string): RosterEntry | undefined
}

const states: Readonly<Record<string, RollState>> = { Current: 'Current', Leaver: 'Leaver', Future: 'Future' }

/** Reads the learners of a seeded database. */
export function loadRoster(database: DatabaseSync): Roster {
  const entries = database
    .prepare('SELECT * FROM learner ORDER BY no')
    .all()
    .map((row): RosterEntry => ({
      number: integer(row, 'no'),
      externalId: text(row, 'external_id'),
      state: states[text(row, 'roll_state')] ?? 'Current',
      admissionDay: integer(row, 'admission_day'),
      leavingDay: integerOrNull(row, 'leaving_day'),
    }))
  const byGuid = new Map(entries.map((entry) => [entry.externalId, entry]))
  return {
    entries,
    byNumber: (number) => entries[number - 1],
    byId: (externalId) => byGuid.get(externalId),
  }
}
