import { formatDay, formatInstant } from '../dates.ts'
import type { Entity } from '../query/compiled-query.ts'
import type { School } from '../school.ts'
import type { Mark } from '../store/mark.ts'
import { recordTypes, toRecordEntity } from './record-entity.ts'
import { recordedRow } from './augmented-rows.ts'
import type { Row } from './augmented-rows.ts'

const sessionMinutes = { AM: 180, PM: 135 }

/** The sessions of every calendar day: the ids that a writer reads first (service-facts 4). */
export function sessionEntities({ calendar }: School): Entity[] {
  return calendar.sessions.map(({ externalId, day, half, start }) => ({
    ExternalID: externalId,
    Description: `${formatDay(day)} ${half}`,
    Session: half,
    Start: formatInstant(start),
    End: formatInstant(start + sessionMinutes[half] * 60_000),
    Type: 'Attendance.StatutoryAttendanceSession',
  }))
}

/** The codes in the form of a lookup (service-facts 7). */
export function codeEntities({ codes, ids }: School): Entity[] {
  return codes.codes.map(({ externalId, code, description, number, visible, statutory, statutoryId }) => ({
    ExternalID: externalId,
    LookupType: 'AttendanceCode',
    ResourceProvider: {
      ExternalID: ids.guid('provider', code === statutory ? 1 : 2),
      Code: code === statutory ? 'DFE' : 'SCH',
      Description: code === statutory ? 'Department for Education' : 'School',
    },
    Code: code,
    Description: description,
    DisplayOrder: number,
    IsVisible: visible,
    StatutoryAttendanceCode: { ExternalID: statutoryId, Type: 'Attendance.Lookup.StatutoryAttendanceCode' },
  }))
}

/**
 * The audit of changes (service-facts 4): every state that a write replaced, and every state that a write made, oldest
 * write first. `since` leaves out what was written before that instant.
 */
export function historyEntities(school: School, since = -Infinity): Entity[] {
  return school.marks.history(since).flatMap(({ mark, changedBy }) => {
    const row = rowOf(school, mark)
    if (row === undefined) return []
    const { ExternalID, ...rest } = toRecordEntity(row.view, recordTypes.documented)
    return [
      {
        ExternalID: school.ids.guid('history', changedBy, mark.seq),
        AttendanceRecord: ExternalID ?? null,
        ...rest,
      },
    ]
  })
}

/** The row of a stored mark; undefined where its session is outside the calendar. */
export function rowOf(school: School, mark: Mark): Row | undefined {
  const learner = school.roster.byNumber(mark.learner)
  const session = school.calendar.byNumber(mark.session)
  return learner === undefined || session === undefined
    ? undefined
    : recordedRow(school, learner, session, mark)
}
