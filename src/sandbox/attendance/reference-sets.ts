import { formatDay, formatInstant } from '../dates.ts'
import type { Entity } from '../json.ts'
import type { School } from '../school.ts'
import type { MarkChange } from '../store/marks.ts'
import { recordTypes, type RecordView, toRecordEntity } from './record.ts'
import { type Row, rowOf } from './rows.ts'

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
 * write first. `since` excludes writes before that instant.
 */
export function historyEntities(school: School, since = -Infinity): Entity[] {
  return school.marks.history(since).flatMap((change) => {
    const view = historyView(school, change)
    if (view === undefined) return []
    const { ExternalID, ...rest } = toRecordEntity(view, recordTypes.documented)
    return [{ ExternalID: ExternalID ?? null, AttendanceRecord: change.mark.externalId, ...rest }]
  })
}

/** The states of one mark as the legacy face shows them, oldest write first and none after `asOf`. */
export function historyViews(school: School, { position }: Row, asOf = Infinity): RecordView[] {
  const { marks } = school
  if (marks.lastSeq() === 0) return []
  return marks
    .historyOf(position)
    .flatMap((change) => (change.changedBy <= asOf ? (historyView(school, change) ?? []) : []))
}

/** A state with an id of its own; undefined where its session is outside the calendar. */
function historyView(school: School, { mark, changedBy }: MarkChange): RecordView | undefined {
  const row = rowOf(school, mark)
  return row && { ...row.view, externalId: school.ids.guid('history', changedBy, mark.seq) }
}
