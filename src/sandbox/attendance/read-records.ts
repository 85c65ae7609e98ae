import { odataError } from '../edge/reply.ts'
import type { Reply } from '../edge/reply.ts'
import type { Route, ServiceRequest } from '../edge/request.ts'
import { compileQuery } from '../query/compile-query.ts'
import type { QueryContext } from '../query/compile-query.ts'
import type { Entity } from '../query/compiled-query.ts'
import type { Describe } from '../query/describe-entity.ts'
import { presentationOf } from '../query/presentation.ts'
import { readQuery } from '../query/read-query.ts'
import type { School } from '../school.ts'
import { augmentedRows } from './augmented-rows.ts'
import type { Row, RowPosition, RowQuery } from './augmented-rows.ts'
import { pageRows } from './page-rows.ts'
import { boundsOf } from './read-bounds.ts'
import { refuseWideRange } from './read-range.ts'

/** How a face shows attendance records. */
export interface RecordFace {
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

/**
 * Answers a GET of attendance records: `$filter` required and narrow, in pages, in order of learner and time unless the
 * client orders otherwise. Only the rows inside the filter's bounds are looked at. Errors: `QueryError`.
 */
export function readRecords(
  school: School,
  face: RecordFace,
  limits: ReadLimits,
  route: Route,
  request: ServiceRequest,
): Reply {
  const options = readQuery(request.query)
  if (options.filter === undefined)
    return odataError(400, 'FilterRequired', 'A GET of attendance records needs a $filter.')
  const presentation = presentationOf(options, route, request, face.queryContext.index, face.describe)
  const query = compileQuery(options, face.typeName, face.queryContext, presentation.describe)
  const bounds = query.filter === undefined ? {} : boundsOf(query.filter)
  const refusal = refuseWideRange(bounds, limits.maxDays)
  if (refusal !== undefined) return refusal

  const { recordedOnly, toEntity } = face
  const rows: RowQuery = {
    bounds,
    recordedOnly,
    ...(request.asOf === undefined ? {} : { asOf: request.asOf }),
  }
  const source = (after: RowPosition | undefined): Iterable<Row> =>
    augmentedRows(school, after === undefined ? rows : { ...rows, after })
  return pageRows({ source, toEntity, query, presentation, options, pageSize: limits.pageSize, request })
}
