import { toV3RegistrationQuery } from '../../translate/index.ts'
import type { WindowQueries } from './read-window.ts'
import { writeIdFilter } from './write-filter.ts'

/** The expand list of registrations at V2, as its clients write it: without `$` (service.md 1.1). */
const EXPAND = 'expand=Enrolments,BoarderStatuses,PartTimeRecords,UPNHistory'

/** The query of registrations: V2's own, and what the adapter makes of it for V3. */
export function writeRegistrationQueries(learners: readonly string[] | undefined): WindowQueries {
  const v2 = learners === undefined ? EXPAND : `${EXPAND}&$filter=${writeIdFilter(learners)}`
  return { v2, v3: toV3RegistrationQuery(v2) }
}
