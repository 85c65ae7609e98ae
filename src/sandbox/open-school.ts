import { createStoredValues } from './control/stored-values.ts'
import { createDifferences } from './differences/differences.ts'
import { dayOf } from './dates.ts'
import { createIdentities } from './identity.ts'
import { createLegacyFormSwitch } from './legacy/legacy-form.ts'
import type { SandboxSettings } from './options.ts'
import type { School } from './school.ts'
import { createCalendar } from './seed/calendar.ts'
import { createCodeTable } from './seed/code-table.ts'
import { createSetComposer } from './seed/documents/compose-set.ts'
import { createPlan } from './seed/plan.ts'
import { createPupil } from './seed/pupil.ts'
import { fillRegisters, refillRegisters, seedDatabase } from './seed/seed-database.ts'
import { seedOnce } from './seed/seed-images.ts'
import { createActors } from './store/actors.ts'
import { openDatabase, readDay } from './store/database.ts'
import { createEntityStore } from './store/entities.ts'
import { createMarkStore } from './store/marks.ts'
import { loadRoster } from './store/roster.ts'

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
  const { seed, scale } = settings
  const ids = createIdentities(seed)
  const codes = createCodeTable(ids)
  const content = `the ${scale} of seed ${seed}`
  const { database, fresh } = openDatabase(settings.db, content)
  const today = dayOf(now())
  // A file keeps its pupils: they grow older, move up and leave as time passes.
  const plan = createPlan(seed, scale, readDay(database, 'planned') ?? today)
  const pupils = plan.places.map((place) => createPupil(seed, place))
  const calendar = createCalendar(ids, now(), plan.firstYear)
  const source = { seed, plan, ids, calendar, codes, today, onProgress }
  const seedNew = (): void => seedDatabase(database, source, content)
  if (!fresh) fillRegisters(database, source)
  // A whole school is large, and opened once.
  else if (scale === 'school') seedNew()
  else seedOnce(database, `${content} on day ${today}`, seedNew)
  const marks = createMarkStore(database, ids)
  const roster = loadRoster(database)
  const entities = createEntityStore(database, createSetComposer({ seed, ids, pupils, year: plan.year }))
  return {
    ...{ database, ids, calendar, codes, pupils, marks, entities, now },
    today: () => dayOf(now()),
    roster,
    actors: createActors(database),
    storedValues: createStoredValues(),
    legacyForm: createLegacyFormSwitch(),
    differences: createDifferences({ database, ids, calendar, codes, marks, roster }),
    undoWrites: () => {
      const written = marks.reset()
      entities.reset()
      if (written === undefined) return
      const [first, last] = [Math.floor(written.first / 2), Math.floor(written.last / 2)]
      refillRegisters(database, source, { first, last })
    },
  }
}
