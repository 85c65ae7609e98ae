import { QueryError, type QueryOptions } from '../../odata/index.ts'
import type { Reply } from '../http/reply.ts'
import type { RoutedRequest } from '../http/request.ts'
import type { Entity } from '../json.ts'
import { type CompiledQuery, compileQuery, type QueryContext, readQuery } from '../query/compile-query.ts'
import {
  collectionReply,
  type Describe,
  plainText,
  type Presentation,
  presentationOf,
} from '../query/presentation.ts'
import { nextLink, pageSize, readOffset, takePage } from '../query/read-entities.ts'
import type { School } from '../school.ts'
import type { Face } from '../store/mark.ts'
import { boundsOf, filterRequired, refuseWideRange } from './read-bounds.ts'
import { augmentedRows, type Row, type RowPosition } from './rows.ts'

/** How a face shows attendance records. */
export interface RecordFace {
  readonly name: Face
  /** Qualified name of the record type. */
  readonly typeName: string
  readonly queryContext: QueryContext
  /** Longest range of a read. */
  readonly maxDays: number
  readonly toEntity: (row: Row) => Entity
  /** Sessions without a mark are left out (service.md 1.2: the V2 read). */
  readonly recordedOnly: boolean
  /** Another way to write the full level of annotations. */
  readonly describe?: Describe
}

/** A checked read of rows. */
interface RowRead {
  readonly face: RecordFace
  readonly options: QueryOptions
  readonly query: CompiledQuery
  readonly presentation: Presentation
  /** Rows in their natural order, beginning after a position or with the first. */
  readonly source: (after: RowPosition | undefined) => Iterable<Row>
}

/**
 * Answers a GET of attendance records: `$filter` required and narrow, in pages, in order of learner and time unless the
 * client orders otherwise. Only the rows inside the filter's bounds are read. Errors: `QueryError`.
 */
export function readRecords(school: School, face: RecordFace, request: RoutedRequest): Reply {
  const opened = openRead(school, face, request)
  return 'status' in opened ? opened : pageRows(opened, request)
}

/** Answers `AttendanceRecords/$count`, with the same limits; paging and order do not change it (OData protocol 11.2.10). */
export function countRecords(school: School, face: RecordFace, request: RoutedRequest): Reply {
  const opened = openRead(school, face, request)
  return 'status' in opened ? opened : plainText(String(countRows(opened)))
}

/**
 * Answers a GET of rows that come in an order of their own, such as those of `SIMS.Changes`: they may be all of a school, so no other
 * order is possible. Errors: `QueryError`.
 */
export function readRows(face: RecordFace, source: RowRead['source'], request: RoutedRequest): Reply {
  const options = readQuery(request.query)
  if (options.orderby !== undefined)
    throw new QueryError('Changes come in the order of their writing', 0, '$orderby')
  return pageRows({ ...compileRead(face, options, request), source }, request)
}

/** Checks a read of records. The reply to one that is not narrow enough. Errors: `QueryError`. */
function openRead(school: School, face: RecordFace, request: RoutedRequest): RowRead | Reply {
  const options = readQuery(request.query)
  if (options.filter === undefined) return filterRequired
  const read = compileRead(face, options, request)
  const bounds = read.query.filter === undefined ? {} : boundsOf(read.query.filter)
  const refusal = refuseWideRange(bounds, face.maxDays)
  if (refusal !== undefined) return refusal
  const rows = { face: face.name, bounds, recordedOnly: face.recordedOnly, asOf: request.asOf }
  return { ...read, source: (after) => augmentedRows(school, { ...rows, after }) }
}

function compileRead(
  face: RecordFace,
  options: QueryOptions,
  request: RoutedRequest,
): Omit<RowRead, 'source'> {
  const presentation = presentationOf(options, request, face.queryContext.index, face.describe)
  const query = compileQuery(options, face.typeName, face.queryContext, presentation.describe)
  return { face, options, query, presentation }
}

/**
 * Answers with one page of rows. In the natural order the token of the next page is the last row of this one, so that a
 * page costs the same at every position; in another order it is the number of rows before it.
 */
function pageRows(read: RowRead, request: RoutedRequest): Reply {
  const { query, options, presentation, face } = read
  const size = pageSize(face.queryContext.pageSize, request, options)
  const reply = (rows: readonly FoundRow[], count: number, token: string | undefined): Reply =>
    collectionReply(
      presentation,
      'AttendanceRecords',
      rows.map(({ entity }) => query.project(entity, `${presentation.root}/AttendanceRecords`)),
      query.count ? count : undefined,
      token === undefined ? undefined : nextLink(request, options, size.rest, token),
    )
  const { compare } = query
  if (compare !== undefined) {
    const offset = readOffset(options)
    const all = [...findRows(read, undefined)].sort((one, other) => compare(one.entity, other.entity))
    const { rows, more } = takePage(all, offset, size)
    return reply(rows, all.length, more ? String(offset + rows.length) : undefined)
  }
  const after = readPosition(options.skiptoken)
  const { rows, more } = takePage(findRows(read, after), after === undefined ? (options.skip ?? 0) : 0, size)
  const last = rows.at(-1)?.position
  const token = more && last !== undefined ? `${last.learner}.${last.session}.${last.copy}` : undefined
  return reply(rows, query.count ? countRows(read) : 0, token)
}

interface FoundRow {
  readonly entity: Entity
  readonly position: RowPosition
}

function* findRows({ source, face, query }: RowRead, after: RowPosition | undefined): Generator<FoundRow> {
  for (const row of source(after)) {
    const entity = face.toEntity(row)
    if (query.matches(entity)) yield { entity, position: row.position }
  }
}

/** Counts without holding: the rows may be those of a whole school. */
function countRows({ source, face, query }: RowRead): number {
  let count = 0
  for (const row of source(undefined))
    if (query.filter === undefined || query.matches(face.toEntity(row))) count += 1
  return count
}

/** The token of a page in the natural order: the last row before it. */
function readPosition(token: string | undefined): RowPosition | undefined {
  if (token === undefined) return undefined
  const [, learner, session, copy] = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})$/.exec(token) ?? []
  if (learner === undefined) throw new QueryError('The token is not of this service', 0, '$skiptoken')
  return { learner: Number(learner), session: Number(session), copy: Number(copy) }
}
