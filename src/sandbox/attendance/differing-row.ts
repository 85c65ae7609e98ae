import type { FaceDifferences } from '../differences/face-differences.ts'
import type { School } from '../school.ts'
import type { ReadBounds } from './read-bounds.ts'
import { marksAsOf, recordedRow } from './recorded-row.ts'
import type { Row, RowPosition } from './recorded-row.ts'

/** The read that a row is for. */
interface RowRead {
  readonly bounds: ReadBounds
  readonly asOf?: number
}

/** The row that a face shows in the place of one of recorded marks. */
export function differingRow(school: School, differences: FaceDifferences, row: Row, read: RowRead): Row {
  const { position } = row
  const { events, records } = read.bounds
  // Rows that are asked for by name stand alone: their order cannot be another.
  const isNamed = events !== undefined || records !== undefined
  const partner = isNamed ? undefined : differences.partner(position.learner, position.session)
  const content =
    partner === undefined ? row : (rowAt(school, differences, { ...position, session: partner }, read) ?? row)
  const { learner, session } = content.position
  const start = differences.start(learner, session)
  const form = differences.form(learner, session)
  return {
    ...{ ...content, position },
    ...(start === undefined ? {} : { view: { ...content.view, start } }),
    ...(form === undefined ? {} : { form }),
  }
}

/** The recorded row of a session; undefined: it has no mark. */
function rowAt(
  school: School,
  differences: FaceDifferences,
  { learner, session }: RowPosition,
  { asOf }: RowRead,
): Row | undefined {
  const entry = school.roster.byNumber(learner)
  const at = school.calendar.byNumber(session)
  const stored = marksAsOf(school, school.marks.range(learner, session, session), asOf)
  const [mark] = differences.marks(learner, session, session, stored)
  return entry === undefined || at === undefined || mark === undefined
    ? undefined
    : recordedRow(school, entry, at, mark)
}
