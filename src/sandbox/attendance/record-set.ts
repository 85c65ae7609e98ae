import { QueryError } from '../../odata/index.ts'
import type { Reply } from '../http/reply.ts'
import type { RoutedRequest } from '../http/request.ts'
import type { Entity } from '../json.ts'
import type { Collection, CollectionRow } from '../query/read-collection.ts'
import type { ServedSet } from '../query/serve-set.ts'
import type { School } from '../school.ts'
import type { Face } from '../store/marks.ts'
import { boundsOf, filterRequired, refuseWideRange, unbounded } from './read-bounds.ts'
import { augmentedRows, changedRows, type Row, rowById, type RowPosition } from './rows.ts'

/** How a face shows attendance records, and takes them. */
export interface RecordFace {
  /** The V2 face leaves out sessions without a mark (service.md 1.2). */
  readonly name: Face
  /** Qualified name of the record type. */
  readonly typeName: string
  readonly toEntity: (row: Row) => Entity
  readonly post: (request: RoutedRequest) => Reply
}

/**
 * The attendance records of a face: a read has a `$filter` that is narrow enough, and only the rows inside its bounds are
 * read, in order of learner and time. `asOf`: reads see nothing that was written after this effect.
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

/** The records of `SIMS.Changes` since an instant in milliseconds: they need no filter. */
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
  if (learner === undefined) throw new QueryError('The token is not of this service', 0, '$skiptoken')
  return { learner: Number(learner), session: Number(session), copy: Number(copy) }
}
