import { dayNumber } from '../dates.ts'
import { isOnRoll } from '../roll.ts'
import type { School } from '../school.ts'
import { fixedMonday } from '../seed/calendar.ts'
import { formatInstant, dayMs } from '../dates.ts'

/** Ids to try the service with. */
export interface Samples {
  /** Learners on roll today, those first who were on roll in the fixed weeks too. */
  readonly learners: readonly string[]
  /** School sessions of the two fixed weeks. */
  readonly events: readonly string[]
  readonly codes: readonly { readonly id: string; readonly code: string }[]
  /** The fixed weeks: from the first instant (inclusive) to the last (exclusive). */
  readonly from: string
  readonly to: string
}

/** Collects the ids for `GET /_sandbox/samples`; for the class the same on every day of a seed. */
export function collectSamples(school: School): Samples {
  const first = dayNumber(fixedMonday)
  const today = school.today()
  const current = school.roster.entries.filter((entry) => isOnRoll(entry, today))
  const [settled = [], others = []] = [true, false].map((wanted) =>
    current.filter((entry) => isOnRoll(entry, first) === wanted),
  )
  return {
    learners: [...settled, ...others].map(({ externalId }) => externalId),
    events: school.calendar.schoolSessions(first, 14).map(({ externalId }) => externalId),
    codes: school.codes.codes.map(({ externalId, code }) => ({ id: externalId, code })),
    from: formatInstant(first * dayMs),
    to: formatInstant((first + 14) * dayMs),
  }
}
