/**
 * OData v4 as data: parse, print, check, compile. Knows no entity of any service, does no I/O; the entry
 * `markbridge/odata` of the package.
 */
export type * from './ast.ts'
export type * from './csdl.ts'
export type { QueryLimits } from './parse/cursor.ts'
export { parseExpand, parseOrderBy, parseSearch, parseSelect } from './parse/parse-expand.ts'
export { parseFilter } from './parse/parse-filter.ts'
export { parseQuery, type RequestQuery } from './parse/parse-query.ts'
export { splitQuery, type RawOption, type SplitQueryOptions } from './parse/split-query.ts'
export { printExpression, printExpression as printFilter } from './print/print-expression.ts'
export { printExpand, printOrderBy, printQuery, printSelect } from './print/print-query.ts'
export { printSearch } from './print/print-search.ts'
export { QueryError } from './query-error.ts'
export { checkExpression, checkFilter, type CheckSettings } from './check/check-expression.ts'
export { createModelIndex, type ModelIndex } from './typed/model-index.ts'
export type * from './typed/typed-ast.ts'
