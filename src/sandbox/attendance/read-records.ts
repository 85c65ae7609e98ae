import type { QueryOptions } from '../../odata/index.ts'
import type { Reply } from '../edge/reply.ts'
import type { Route, ServiceRequest } from '../edge/request.ts'
import { compileQuery } from '../query/compile-query.ts'
import type { QueryContext } from '../query/compile-query.ts'
import type { CompiledQuery, Entity } from '../query/compiled-query.ts'
import type { Describe } from '../query/describe-entity.ts'
import { presentationOf } from '../query/presentation.ts'
import type { Presentation } from '../query/presentation.ts'
import { plainText } from '../query/raw-value.ts'
import { readQuery } from '../query/read-query.ts'
import type { School } from '../school.ts'
import type { Face } from '../store/mark.ts'
import { augmentedRows } from './augmented-rows.ts'
import type { RowQuery } from './augmented-rows.ts'
import type { Row, RowPosition } from './recorded-row.ts'
import { countRows, pageRows } from './page-rows.ts'
import { boundsOf } from './read-bounds.ts'
import { filterRequired, refuseWideRange } from './read-range.ts'

/** How a face shows attendance records. */
export interface RecordFace {
  readonly name: Face
  /** Qualified name of the record type. */
  readonly typeName: string
  readonly queryContext: QueryContext
  readonly toEntity: (row: Row) => Entity
  /** Sessions without a mark are left out (service.md 1.2: the V2 read). */
  readonly recordedOnly: boolean
  /** Another way to write the full level of annotations. */
  readonly describe?: Describe
}

/** Limits of one answer. */
export interface ReadLimits {
  readonly pageSize: number
  readonly maxDays: number
}

/** A checked read: its filter and its bounds. */
interface OpenedRead {
  readonly options: QueryOptions
  readonly query: CompiledQuery
  readonly presentation: Presentation
  readonly source: (after: RowPosition | undefined) => Iterable<Row>
}

/**
 * Answers a GET of attendance records: `$filter` required and narrow, in pages, in order of learner and time unless the
 * client orders otherwise. Only the rows inside the filter's bounds are read. Errors: `QueryError`.
 */
export function readRecords(
  school: School,
  face: RecordFace,
  limits: ReadLimits,
  route: Route,
  request: ServiceRequest,
): Reply {
  const opened = openRead(school, face, limits, route, request)
  const { toEntity } = face
  return 'status' in opened ? opened : pageRows({ ...opened, toEntity, pageSize: limits.pageSize, request })
}

/** Answers `AttendanceRecords/$count`, with the same limits; paging and order do not change it (OData protocol 11.2.10). */
export function countRecords(
  school: School,
  face: RecordFace,
  limits: ReadLimits,
  route: Route,
  request: ServiceRequest,
): Reply {
  const opened = openRead(school, face, limits, route, request)
  if ('status' in opened) return opened
  return plainText(String(countRows({ ...opened, toEntity: face.toEntity })))
}

/** Checks a read of records. The reply to one that is not narrow enough. Errors: `QueryError`. */
function openRead(
  school: School,
  face: RecordFace,
  limits: ReadLimits,
  route: Route,
  request: ServiceRequest,
): OpenedRead | Reply {
  const options = readQuery(request.query)
  if (options.filter === undefined) return filterRequired
  const presentation = presentationOf(options, route, request, face.queryContext.index, face.describe)
  const query = compileQuery(options, face.typeName, face.queryContext, presentation.describe)
  const bounds = query.filter === undefined ? {} : boundsOf(query.filter)
  const refusal = refuseWideRange(bounds, limits.maxDays)
  if (refusal !== undefined) return refusal

  const { recordedOnly } = face
  const rows: RowQuery = {
    face: face.name,
    bounds,
    recordedOnly,
    ...(request.asOf === undefined ? {} : { asOf: request.asOf }),
  }
  const source: OpenedRead['source'] = (after) =>
    augmentedRows(school, after === undefined ? rows : { ...rows, after })
  return { options, query, presentation, source }
}
