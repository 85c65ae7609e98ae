import { createStoredValues } from './control/stored-values.ts'
import { createIdentities } from './identity.ts'
import type { SandboxSettings } from './options.ts'
import type { School } from './school.ts'
import { createCalendar } from './seed/calendar.ts'
import { createCodeTable } from './seed/code-table.ts'
import { collectGroups } from './seed/documents/groups.ts'
import { createPlan } from './seed/plan.ts'
import { createPupil } from './seed/pupil.ts'
import { seedDatabase } from './seed/seed-database.ts'
import { createActors } from './store/actors.ts'
import { openDatabase } from './store/database.ts'
import { createEntityStore } from './store/entities.ts'
import { createMarkStore } from './store/marks.ts'
import { loadRoster } from './store/roster.ts'

/**
 * Opens the school of a seed and scale, and builds it first where the database is new.
 * `onProgress` hears the share that is built, 0 to 1. Errors: `ADP_USAGE` for a file with other content.
 */
export function openSchool(
  settings: SandboxSettings,
  now: () => number,
  onProgress: (share: number) => void,
): School {
  const { seed, scale } = settings
  const ids = createIdentities(seed)
  const plan = createPlan(seed, scale)
  const pupils = plan.places.map((place) => createPupil(seed, place))
  const opened = now()
  const calendar = createCalendar(ids, opened, plan.firstYear)
  const codes = createCodeTable(ids)
  const content = `the ${scale} of seed ${seed}`
  const { database, fresh } = openDatabase(settings.db, content)
  if (fresh)
    seedDatabase(database, { seed, plan, pupils, ids, calendar, codes, now: opened, onProgress }, content)
  return {
    ...{ database, ids, calendar, codes, now },
    groups: collectGroups(ids, pupils),
    roster: loadRoster(database),
    actors: createActors(database),
    marks: createMarkStore(database, ids),
    entities: createEntityStore(database),
    storedValues: createStoredValues(),
  }
}
