import { QueryError } from '../../odata/index.ts'
import { formatDay, formatInstant } from '../dates.ts'
import type { Reply } from '../http/reply.ts'
import type { RoutedRequest } from '../http/request.ts'
import type { Entity } from '../json.ts'
import type { Collection, CollectionRow } from '../query/read-collection.ts'
import type { ServedSet } from '../query/serve-set.ts'
import type { School } from '../school.ts'
import type { Face, MarkChange } from '../store/marks.ts'
import { boundsOf, filterRequired, refuseWideRange, unbounded } from './read-bounds.ts'
import { type RecordView, toRecordEntity } from './record.ts'
import { augmentedRows, changedRows, type Row, rowById, rowOf, type RowPosition } from './rows.ts'

export interface RecordFace {
  /** The interface that shows the records. V2 omits sessions without a mark (service.md 1.2). */
  readonly name: Face
  readonly typeName: string
  readonly toEntity: (row: Row) => Entity
  readonly post: (request: RoutedRequest) => Reply
}

/**
 * Creates the set of attendance records of an interface. A read requires a narrow `$filter`, and visits only the rows within the bounds of
 * the filter, in order of learner and time. If `asOf` is given, reads ignore effects with a higher number.
 */
export function recordSet(school: School, face: RecordFace, asOf: number | undefined): ServedSet {
  const { name, toEntity } = face
  const shown = { face: name, recordedOnly: name === 'V2', asOf }
  return {
    ...face,
    context: 'AttendanceRecords',
    refuse: (filter) =>
      filter === undefined ? filterRequired : refuseWideRange(boundsOf(filter), school.settings.maxDays),
    rows: (after, filter) => {
      const bounds = filter === undefined ? unbounded : boundsOf(filter)
      return toCollection(augmentedRows(school, { ...shown, bounds, after: readPosition(after) }), toEntity)
    },
    byId: (id) => {
      const row = rowById(school, id, shown)
      return row && toEntity(row)
    },
  }
}

/** Creates the collection for `SIMS.Changes` since an instant in milliseconds since 1970. This collection can be read without a filter. */
export function changedRecords(school: School, face: RecordFace, since: number): Collection {
  return {
    typeName: face.typeName,
    context: 'AttendanceRecords',
    naturalOrderOnly: true,
    rows: (after) => toCollection(changedRows(school, since, readPosition(after)), face.toEntity),
  }
}

function* toCollection(rows: Iterable<Row>, toEntity: RecordFace['toEntity']): Generator<CollectionRow> {
  for (const row of rows) {
    const { learner, session, copy } = row.position
    yield { entity: toEntity(row), token: () => `${learner}.${session}.${copy}` }
  }
}

function readPosition(token: string | undefined): RowPosition | undefined {
  if (token === undefined) return undefined
  const [, learner, session, copy] = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})$/.exec(token) ?? []
  if (learner === undefined) throw new QueryError('This service did not issue the token', 0, '$skiptoken')
  return { learner: Number(learner), session: Number(session), copy: Number(copy) }
}

const sessionMinutes = { AM: 180, PM: 135 }

/** Lists the sessions of every calendar day. A client needs the id of the session to write a mark (service-facts 4). */
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

/** Lists the attendance codes in the form of a lookup (service-facts 7). */
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

/** Lists the history of changes (service-facts 4): the states before and after each write, in the order of the writes. */
export function historyEntities(school: School, since = -Infinity): Entity[] {
  return school.marks.history(since).flatMap((change) => {
    const view = historyView(school, change)
    if (view === undefined) return []
    const { ExternalID, ...rest } = toRecordEntity(view)
    return [{ ExternalID: ExternalID ?? null, AttendanceRecord: change.mark.externalId, ...rest }]
  })
}

/** Returns the states of the mark of a row before and after each write, oldest first, as V2 shows them. Leaves out writes after effect `asOf`. */
export function historyViews(school: School, { position }: Row, asOf = Infinity): RecordView[] {
  const { marks } = school
  if (marks.lastSeq() === 0) return []
  return marks
    .historyOf(position)
    .flatMap((change) => (change.changedBy <= asOf ? (historyView(school, change) ?? []) : []))
}

/** Returns a state of a mark with its own id, or `undefined` if the session of the mark is outside the calendar. */
function historyView(school: School, { mark, changedBy }: MarkChange): RecordView | undefined {
  const row = rowOf(school, mark)
  return row && { ...row.view, externalId: school.ids.guid('history', changedBy, mark.seq) }
}
