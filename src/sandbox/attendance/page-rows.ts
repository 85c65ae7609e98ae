import { QueryError } from '../../odata/index.ts'
import type { QueryOptions } from '../../odata/index.ts'
import type { Reply } from '../edge/reply.ts'
import type { ServiceRequest } from '../edge/request.ts'
import { collectionReply } from '../query/collection.ts'
import type { CompiledQuery } from '../query/compiled-query.ts'
import { nextLink, pageSize, takePage } from '../query/page.ts'
import type { Entity } from '../query/compiled-query.ts'
import type { Presentation } from '../query/presentation.ts'
import { readOffset } from '../query/read-entities.ts'
import type { Row, RowPosition } from './recorded-row.ts'

/** Rows in their natural order, beginning after a position or with the first. */
export type RowSource = (after: RowPosition | undefined) => Iterable<Row>

/** The input of a page. */
export interface RowPage {
  readonly source: RowSource
  readonly toEntity: (row: Row) => Entity
  readonly query: CompiledQuery
  readonly presentation: Presentation
  readonly options: QueryOptions
  /** Rows of one answer at most. */
  readonly pageSize: number
  readonly request: ServiceRequest
}

interface FoundRow {
  readonly entity: Entity
  /** The entity as it is written. */
  readonly shown: Entity
  readonly position: RowPosition
}

/**
 * Answers with one page of rows. In the natural order the token of the next page is the last row of this one, so that a
 * page costs the same at every position; in another order it is the number of rows before it.
 */
export function pageRows(page: RowPage): Reply {
  const { query, options } = page
  const size = pageSize(page.pageSize, page.request.header('prefer'), options.top)
  if (query.compare !== undefined) {
    const offset = readOffset(options)
    const { first, total } = firstInOrder(findRows(page, undefined), query.compare, offset + size.size + 1)
    const { rows, more } = takePage(first, offset, size)
    return reply(page, rows, total, more ? String(offset + rows.length) : undefined, size.rest)
  }
  const after = readPosition(options.skiptoken)
  const { rows, more } = takePage(findRows(page, after), after === undefined ? (options.skip ?? 0) : 0, size)
  const last = rows.at(-1)?.position
  const token = more && last !== undefined ? `${last.learner}.${last.session}.${last.copy}` : undefined
  return reply(page, rows, query.count ? countRows(page) : 0, token, size.rest)
}

function reply(
  { query, options, presentation, request }: RowPage,
  rows: readonly FoundRow[],
  count: number,
  token: string | undefined,
  rest: number | undefined,
): Reply {
  const url = `${request.origin}${request.path}`
  return collectionReply({
    presentation,
    context: 'AttendanceRecords',
    rows: rows.map(({ shown }) => query.project(shown, `${presentation.root}/AttendanceRecords`)),
    count: query.count ? count : undefined,
    next: token === undefined ? undefined : nextLink(url, options, rest, token),
  })
}

function* findRows(
  { source, toEntity, query }: RowPage,
  after: RowPosition | undefined,
): Generator<FoundRow> {
  for (const row of source(after)) {
    const entity = toEntity(row)
    if (query.matches(entity)) yield { entity, shown: row.form?.(entity) ?? entity, position: row.position }
  }
}

/**
 * The first `limit` rows in an order, and how many rows there are. Never holds more than twice as many: the rows may be
 * those of a whole school.
 */
function firstInOrder(
  rows: Iterable<FoundRow>,
  compare: (one: Entity, other: Entity) => number,
  limit: number,
): { first: readonly FoundRow[]; total: number } {
  const held: FoundRow[] = []
  let total = 0
  const cut = (): void => {
    held.sort((one, other) => compare(one.entity, other.entity))
    held.length = Math.min(held.length, limit)
  }
  for (const row of rows) {
    total += 1
    held.push(row)
    if (held.length >= 2 * limit) cut()
  }
  cut()
  return { first: held, total }
}

/** Counts without holding: the rows may be those of a whole school. */
export function countRows({
  source,
  toEntity,
  query,
}: Pick<RowPage, 'source' | 'toEntity' | 'query'>): number {
  let count = 0
  for (const row of source(undefined))
    if (query.filter === undefined || query.matches(toEntity(row))) count += 1
  return count
}

/** The token of a page in the natural order: the last row before it. */
function readPosition(token: string | undefined): RowPosition | undefined {
  if (token === undefined) return undefined
  const [, learner, session, copy] = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})$/.exec(token) ?? []
  if (learner === undefined) throw new QueryError('The token is not of this service', 0, '$skiptoken')
  return { learner: Number(learner), session: Number(session), copy: Number(copy) }
}
