import type { School } from '../school.ts'
import { augmentedRows } from './augmented-rows.ts'
import type { Row, RowPosition } from './augmented-rows.ts'
import { rowOf } from './reference-sets.ts'

/**
 * `AttendanceRecords/SIMS.Changes` (service-facts 4): the marks that were written since an instant. First those of the
 * seeded history, recorded by a teacher then, by learner and time; then those written through this service, in the order
 * of writing, which come after the last learner and have the number of their effect as position.
 */
export function* changedRows(school: School, since: number, after: RowPosition | undefined): Generator<Row> {
  const beyond = school.roster.entries.length + 1
  if (after === undefined || after.learner < beyond) {
    const seeded = { bounds: { from: since }, recordedOnly: true }
    for (const row of augmentedRows(school, after === undefined ? seeded : { ...seeded, after }))
      if (row.seq === 0 && (row.view.recordedOn ?? 0) >= since) yield row
  }
  const written = after?.learner === beyond ? after.session : 0
  for (const mark of school.marks.changedSince(since)) {
    const row = mark.seq > written ? rowOf(school, mark) : undefined
    if (row !== undefined) yield { ...row, position: { learner: beyond, session: mark.seq, copy: 0 } }
  }
}
