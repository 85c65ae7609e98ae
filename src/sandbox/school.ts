import type { DatabaseSync } from 'node:sqlite'
import type { StoredValues } from './control/stored-values.ts'
import type { Differences } from './differences/differences.ts'
import type { Identities } from './identity.ts'
import type { LegacyFormSwitch } from './legacy/legacy-form.ts'
import type { Calendar } from './seed/calendar.ts'
import type { CodeTable } from './seed/code-table.ts'
import type { Pupil } from './seed/pupil.ts'
import type { Actors } from './store/actors.ts'
import type { EntityStore } from './store/entities.ts'
import type { MarkStore } from './store/marks.ts'
import type { Roster } from './store/roster.ts'

/** The school behind both faces of the service: one store, one calendar, one set of ids. */
export interface School {
  readonly database: DatabaseSync
  readonly ids: Identities
  readonly calendar: Calendar
  readonly codes: CodeTable
  readonly roster: Roster
  readonly actors: Actors
  readonly marks: MarkStore
  readonly entities: EntityStore
  /** The changes of the service to the values of a mark. */
  readonly storedValues: StoredValues
  /** The form of V2's replies, and what it does with batches whose ids differ. */
  readonly legacyForm: LegacyFormSwitch
  /** What one face shows otherwise than the store has it. */
  readonly differences: Differences
  /** Who the learners are, in order of their numbers. */
  readonly pupils: readonly Pupil[]
  /** Undoes every write of a client: the school is as it was seeded. */
  readonly undoWrites: () => void
  /** The time of the service, in milliseconds. */
  readonly now: () => number
  /** The number of its day: ages, roll states, years and groups are those of today. */
  readonly today: () => number
}
