import { QueryError } from '../../odata/index.ts'
import { odataError } from '../edge/reply.ts'
import type { Reply } from '../edge/reply.ts'
import type { Route, ServiceRequest } from '../edge/request.ts'
import { collectionReply } from '../query/collection.ts'
import { compileQuery } from '../query/compile-query.ts'
import type { CompiledQuery, QueryContext } from '../query/compile-query.ts'
import { nextLink, pageSize, takePage } from '../query/page.ts'
import type { Entity } from '../query/projection.ts'
import { readOffset } from '../query/read-entities.ts'
import { readQuery } from '../query/read-query.ts'
import type { School } from '../school.ts'
import { augmentedRows } from './augmented-rows.ts'
import type { Row, RowPosition, RowQuery } from './augmented-rows.ts'
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
}

/** Limits of one answer. */
export interface ReadLimits {
  readonly pageSize: number
  readonly maxDays: number
}

interface FoundRow {
  readonly entity: Entity
  readonly position: RowPosition
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
  const query = compileQuery(options, face.typeName, face.queryContext)
  const bounds = query.filter === undefined ? {} : boundsOf(query.filter)
  const refusal = refuseWideRange(bounds, limits.maxDays)
  if (refusal !== undefined) return refusal

  const { recordedOnly } = face
  const rows: RowQuery = {
    bounds,
    recordedOnly,
    ...(request.asOf === undefined ? {} : { asOf: request.asOf }),
  }
  const size = pageSize(limits.pageSize, request.header('prefer'), options.top)
  const url = `${request.origin}${request.path}`
  const root = `${request.origin}${route.root}`
  const reply = (found: readonly FoundRow[], count: number | undefined, token: string | undefined): Reply =>
    collectionReply({
      root,
      context: 'AttendanceRecords',
      rows: found.map(({ entity }) => query.project(entity)),
      count,
      next: token === undefined ? undefined : nextLink(url, options, size.rest, token),
    })

  if (query.compare !== undefined) {
    const { compare } = query
    const all = [...findRows(school, face, rows, query)].sort((one, other) =>
      compare(one.entity, other.entity),
    )
    const offset = readOffset(options)
    const page = takePage(all, offset, size)
    const token = page.more ? String(offset + page.rows.length) : undefined
    return reply(page.rows, query.count ? all.length : undefined, token)
  }
  const after = readPosition(options.skiptoken)
  const page = takePage(
    findRows(school, face, after === undefined ? rows : { ...rows, after }, query),
    after === undefined ? (options.skip ?? 0) : 0,
    size,
  )
  const last = page.rows.at(-1)?.position
  const token = page.more && last !== undefined ? `${last.learner}.${last.session}.${last.copy}` : undefined
  const count = query.count ? [...findRows(school, face, rows, query)].length : undefined
  return reply(page.rows, count, token)
}

function* findRows(
  school: School,
  face: RecordFace,
  rows: RowQuery,
  query: CompiledQuery,
): Generator<FoundRow> {
  for (const row of augmentedRows(school, rows)) {
    const entity = face.toEntity(row)
    if (query.matches(entity)) yield { entity, position: row.position }
  }
}

/** The token of a page in the natural order: the last row before it. */
function readPosition(token: string | undefined): RowPosition | undefined {
  if (token === undefined) return undefined
  const [, learner, session, copy] = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})$/.exec(token) ?? []
  if (learner === undefined) throw new QueryError('The token is not of this service', 0, '$skiptoken')
  return { learner: Number(learner), session: Number(session), copy: Number(copy) }
}
