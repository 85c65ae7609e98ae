import type { DatabaseSync } from 'node:sqlite'
import type { Enrolment } from '../roll.ts'
import { integer, text } from './columns.ts'

/** A learner as the register knows it. */
export interface RosterEntry extends Enrolment {
  readonly number: number
  readonly externalId: string
}

/** All learners, held in memory: every write asks for one of them. */
export interface Roster {
  readonly entries: readonly RosterEntry[]
  byNumber(number: number): RosterEntry | undefined
  /** The learner with a guid in lower case. */
  byId(externalId: string): RosterEntry | undefined
}

/** Reads the learners of a seeded database. */
export function loadRoster(database: DatabaseSync): Roster {
  const entries = database
    .prepare('SELECT * FROM learner ORDER BY no')
    .all()
    .map((row): RosterEntry => ({
      number: integer(row, 'no'),
      externalId: text(row, 'external_id'),
      admissionDay: integer(row, 'admission_day'),
      leavingDay: integer(row, 'leaving_day'),
    }))
  const byGuid = new Map(entries.map((entry) => [entry.externalId, entry]))
  return {
    entries,
    byNumber: (number) => entries[number - 1],
    byId: (externalId) => byGuid.get(externalId),
  }
}
