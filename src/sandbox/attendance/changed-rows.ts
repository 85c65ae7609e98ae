import type { School } from '../school.ts'
import type { Mark } from '../store/mark.ts'
import { augmentedRows } from './augmented-rows.ts'
import { differingRow } from './differing-row.ts'
import type { Row, RowPosition } from './recorded-row.ts'
import { rowOf } from './reference-sets.ts'

/**
 * `AttendanceRecords/SIMS.Changes` (service-facts 4): the marks that were written since an instant. First those of the
 * seeded history, recorded by a teacher then, by learner and time; then those written through this service, in the order
 * of writing, which come after the last learner and have the number of their effect as position.
 */
export function* changedRows(school: School, since: number, after: RowPosition | undefined): Generator<Row> {
  const beyond = school.roster.entries.length + 1
  if (after === undefined || after.learner < beyond) {
    const seeded = { face: 'V3', bounds: { from: since }, recordedOnly: true } as const
    for (const row of augmentedRows(school, after === undefined ? seeded : { ...seeded, after }))
      if (row.seq === 0 && (row.view.recordedOn ?? 0) >= since) yield row
  }
  const written = after?.learner === beyond ? after.session : 0
  for (const mark of school.marks.changedSince(since)) {
    const row = mark.seq > written ? shownRow(school, mark) : undefined
    if (row !== undefined) yield { ...row, position: { learner: beyond, session: mark.seq, copy: 0 } }
  }
}

/** The row of a written mark as V3 shows it; undefined where it shows none, or not yet. */
function shownRow(school: School, mark: Mark): Row | undefined {
  const differences = school.differences.on('V3')
  if (differences === undefined) return rowOf(school, mark)
  if (differences.hides(mark.seq)) return undefined
  const shown = differences
    .marks(mark.learner, mark.session, mark.session, [mark])
    .find(({ copy }) => copy === mark.copy)
  const row = shown === undefined ? undefined : rowOf(school, shown)
  return row === undefined
    ? undefined
    : differingRow(school, differences, row, { bounds: { records: new Set() } })
}
