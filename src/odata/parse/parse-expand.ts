import type { ExpandItem, OrderByItem, SearchExpr, SelectItem } from '../ast.ts'
import { Cursor, type QueryLimits } from './cursor.ts'
import { parseExpandAt, parseOrderByAt, parseSelectAt } from './parse-options.ts'
import { parseSearchAt } from './parse-search.ts'

function parseWhole<T>(text: string, limits: QueryLimits | undefined, parse: (cursor: Cursor) => T): T {
  const cursor = new Cursor(text, limits)
  const value = parse(cursor)
  cursor.expectEnd('"," or the end')
  return value
}

/**
 * Reads the value of `$expand` from percent-decoded text.
 *
 * @throws QueryError (`ADP_QUERY`, 400) with the character position
 * @example parseExpand('Enrolments($expand=EnrolmentStatuses;$top=1),BoarderStatuses/$count')
 */
export function parseExpand(text: string, limits?: QueryLimits): readonly ExpandItem[] {
  return parseWhole(text, limits, parseExpandAt)
}

/** Reads the value of `$select` from percent-decoded text; throws `QueryError`. */
export function parseSelect(text: string, limits?: QueryLimits): readonly SelectItem[] {
  return parseWhole(text, limits, parseSelectAt)
}

/** Reads the value of `$orderby` from percent-decoded text; throws `QueryError`. */
export function parseOrderBy(text: string, limits?: QueryLimits): readonly OrderByItem[] {
  return parseWhole(text, limits, parseOrderByAt)
}

/** Reads the value of `$search` from percent-decoded text; throws `QueryError`. */
export function parseSearch(text: string, limits?: QueryLimits): SearchExpr {
  return parseWhole(text, limits, parseSearchAt)
}
