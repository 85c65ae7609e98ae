import type { DatabaseSync } from 'node:sqlite'

import { createDifferences, type Differences } from './control/differences.ts'
import { createSetting, type Setting } from './control/setting.ts'
import { type ValueRules, valueRulesSchema } from './control/stored-values.ts'
import { dayOf } from './dates.ts'
import { createIdentities, type Identities } from './identity.ts'
import { composeSet, type LearnerEntity } from './learner/compose-set.ts'
import type { LearnerSet } from './learner/learner-sets.ts'
import { type LegacyForm, legacyFormSchema } from './legacy/legacy-form.ts'
import type { SandboxSettings } from './options.ts'
import { type Calendar, createCalendar } from './seed/calendar.ts'
import { type CodeTable, createCodeTable } from './seed/codes.ts'
import { createRoster, type Roster } from './seed/pupils.ts'
import { closeRegisters, refillRegisters, seedDatabase } from './seed/seed-database.ts'
import {
  type Actors,
  createActors,
  createPatches,
  openDatabase,
  type Patches,
  readDay,
} from './store/database.ts'
import { createMarkStore, type MarkStore } from './store/marks.ts'

/** The school behind both faces of the service: one store, one calendar, one set of ids. */
export interface School {
  readonly settings: SandboxSettings
  readonly database: DatabaseSync
  readonly ids: Identities
  readonly calendar: Calendar
  readonly codes: CodeTable
  readonly roster: Roster
  readonly actors: Actors
  readonly marks: MarkStore
  readonly patches: Patches
  /** The entities of a set of the learner domains on a day, as they were seeded. */
  readonly compose: (set: LearnerSet, day: number) => LearnerEntity[]
  /** The changes of the service to the values of a mark. */
  readonly valueRules: Setting<ValueRules>
  /** The form of V2's replies, and what it does with batches whose ids differ. */
  readonly legacyForm: Setting<LegacyForm>
  /** The marks that one face shows otherwise than they are stored. */
  readonly differences: Differences
  /** Undoes every write of a client: the school is as it was seeded. */
  readonly undoWrites: () => void
  /**
   * Runs `work` in one transaction and undoes everything it wrote unless it returns true; an error undoes it too. Returns what
   * `work` returned.
   */
  readonly attempt: (work: () => boolean) => boolean
  /** The time of the service, in milliseconds. */
  readonly now: () => number
  /** The number of its day: ages, roll states, years and groups are those of today. */
  readonly today: () => number
}

/**
 * Opens the school of a seed and scale, and builds it first where the database is new. `now` is the one clock of it: the day
 * on which the sandbox opens decides who is on roll and how far the registers are filled in.
 * `onProgress` gets the share that is built, 0 to 1. Errors: `ADP_USAGE` for a file with other content.
 */
export function openSchool(
  settings: SandboxSettings,
  now: () => number,
  onProgress: (share: number) => void,
): School {
  const { seed, scale, db } = settings
  const ids = createIdentities(seed)
  const codes = createCodeTable(ids)
  const content = `the ${scale} of seed ${seed}`
  const { database, fresh } = openDatabase(db, content)
  const today = dayOf(now())
  // A file keeps its pupils: they grow older, move up and leave as time passes.
  const roster = createRoster(seed, ids, scale, readDay(database, 'planned') ?? today)
  const calendar = createCalendar(ids, now(), roster.firstYear)
  const source = { seed, roster, ids, calendar, codes, onProgress }
  if (fresh) seedDatabase(database, source, today, content)
  else closeRegisters(database, source, today)
  const marks = createMarkStore(database, ids)
  const patches = createPatches(database)
  const actors = createActors(database)
  return {
    ...{ settings, database, ids, calendar, codes, roster, actors, marks, patches, now },
    compose: (set, day) => composeSet({ seed, ids, roster }, set, day),
    valueRules: createSetting(valueRulesSchema, 'The rules for stored values'),
    legacyForm: createSetting(legacyFormSchema, 'The form of V2'),
    differences: createDifferences(ids, codes),
    undoWrites: () => {
      const written = marks.reset()
      patches.reset()
      if (written !== undefined)
        refillRegisters(database, source, Math.floor(written.first / 2), Math.floor(written.last / 2))
    },
    attempt: (work) => {
      database.exec('BEGIN')
      let keep = false
      try {
        keep = work()
        return keep
      } finally {
        database.exec(keep ? 'COMMIT' : 'ROLLBACK')
        if (!keep) for (const store of [marks, patches, actors]) store.reload()
      }
    },
    today: () => dayOf(now()),
  }
}
