import { createDifferences } from './control/differences.ts'
import { createSetting } from './control/setting.ts'
import { valueRulesSchema } from './control/stored-values.ts'
import { dayOf } from './dates.ts'
import { createIdentities } from './identity.ts'
import { composeSet } from './learner/compose-set.ts'
import type { LearnerSet } from './learner/learner-sets.ts'
import { legacyFormSchema } from './legacy/legacy-form.ts'
import type { SandboxSettings } from './options.ts'
import { createCalendar } from './seed/calendar.ts'
import { createCodeTable } from './seed/codes.ts'
import { createRoster } from './seed/pupils.ts'
import { closeRegisters, refillRegisters, seedDatabase } from './seed/seed-database.ts'
import { createActors, createPatches, openDatabase, readDay } from './store/database.ts'
import { createMarkStore } from './store/marks.ts'

export type School = ReturnType<typeof openSchool>

/**
 * Opens the school of a seed and scale, and seeds a new database first. `now` is the only clock of the school. The registers are filled in
 * up to the day before the day of opening. For a new database, the day of opening also determines the learners on roll. `onProgress`
 * receives the completed share, from 0 to 1. Throws `ADP_USAGE` for a database file that another seed or scale filled.
 */
export function openSchool(
  settings: SandboxSettings,
  now: () => number,
  onProgress: (share: number) => void,
) {
  const { seed, scale, db } = settings
  const ids = createIdentities(seed)
  const codes = createCodeTable(ids)
  const content = `the ${scale} of seed ${seed}`
  const { database, fresh } = openDatabase(db, content)
  const today = dayOf(now())
  // The pupils of a database file stay the same people. As time passes, they grow older, move up and leave.
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
    /** Returns the current day number of the service, on which ages, roll states, year groups and groups depend. */
    today: () => dayOf(now()),
    compose: (set: LearnerSet, day: number) => composeSet({ seed, ids, roster }, set, day),
    valueRules: createSetting(valueRulesSchema, 'The rules for stored values'),
    legacyForm: createSetting(legacyFormSchema, 'The form of V2'),
    differences: createDifferences(ids, codes),
    /** Undoes all writes of clients, so that the seeded state is restored. */
    undoWrites: (): void => {
      const written = marks.reset()
      patches.reset()
      if (written !== undefined)
        refillRegisters(database, source, Math.floor(written.first / 2), Math.floor(written.last / 2))
    },
    /** Runs `work` in a transaction, and rolls the transaction back if `work` returns false or throws. Returns the result of `work`. */
    attempt: (work: () => boolean): boolean => {
      database.exec('BEGIN')
      let shouldCommit = false
      try {
        shouldCommit = work()
        return shouldCommit
      } finally {
        database.exec(shouldCommit ? 'COMMIT' : 'ROLLBACK')
        if (!shouldCommit) for (const store of [marks, patches, actors]) store.reload()
      }
    },
  }
}
