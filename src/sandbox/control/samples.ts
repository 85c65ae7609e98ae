import { dayNumber } from '../dates.ts'
import type { School } from '../school.ts'
import { fixedMonday } from '../seed/calendar.ts'
import { formatInstant, dayMs } from '../dates.ts'

/** Ids to try the service with. */
export interface Samples {
  /** Current learners. */
  readonly learners: readonly string[]
  /** School sessions of the two fixed weeks. */
  readonly events: readonly string[]
  readonly codes: readonly { readonly id: string; readonly code: string }[]
  /** The fixed weeks: from the first instant (inclusive) to the last (exclusive). */
  readonly from: string
  readonly to: string
}

/** Collects the ids for `GET /_sandbox/samples`; the same on every day for the same seed and scale. */
export function collectSamples(school: School): Samples {
  const first = dayNumber(fixedMonday)
  return {
    learners: school.roster.entries
      .filter(({ state }) => state === 'Current')
      .map(({ externalId }) => externalId),
    events: school.calendar.schoolSessions(first, 14).map(({ externalId }) => externalId),
    codes: school.codes.codes.map(({ externalId, code }) => ({ id: externalId, code })),
    from: formatInstant(first * dayMs),
    to: formatInstant((first + 14) * dayMs),
  }
}
