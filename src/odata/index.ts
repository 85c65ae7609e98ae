/**
 * OData v4 as data: parse, print, check, compile. Knows no entity of any service, does no I/O; the entry
 * `markbridge/odata` of the package.
 */
export type * from './ast.ts'
export type * from './csdl.ts'
export type { QueryLimits } from './cursor.ts'
export { parseExpand, parseOrderBy, parseSearch, parseSelect } from './parse-expand.ts'
export { parseFilter } from './parse-filter.ts'
export { parseQuery, type RequestQuery } from './parse-query.ts'
export { QueryError } from './query-error.ts'
export { splitQuery, type RawOption, type SplitQueryOptions } from './split-query.ts'
