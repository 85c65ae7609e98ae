/**
 * OData v4 as data: parse, print, check, compile. Knows no entity of any service, does no I/O; the entry
 * `markbridge/odata` of the package.
 */
export type * from './ast.ts'
export type * from './csdl.ts'
export { QueryError } from './query-error.ts'

export type { QueryLimits } from './parse/cursor.ts'
export { parseExpand, parseOrderBy, parseSearch, parseSelect } from './parse/parse-expand.ts'
export { parseFilter } from './parse/parse-filter.ts'
export { parseKey } from './parse/parse-key.ts'
export { parseQuery, type RequestQuery } from './parse/parse-query.ts'
export { parseResourcePath } from './parse/parse-resource-path.ts'
export { splitQuery, type RawOption, type SplitQueryOptions } from './parse/split-query.ts'

export { printFilter } from './print/print-filter.ts'
export { encodeOption, printExpand, printOrderBy, printQuery, printSelect } from './print/print-query.ts'
export { printSearch } from './print/print-search.ts'

export { checkExpression, checkFilter, type CheckSettings } from './check/check-expression.ts'
export { checkKey } from './check/check-key.ts'
export { checkQuery } from './check/check-query.ts'
export { isGuid } from './typed/guid.ts'
export { createModelIndex, type ModelIndex, type StructuredType, type TypeInfo } from './typed/model-index.ts'
export {
  parseDate,
  parseDuration,
  parseInstant,
  parseTimeOfDay,
  type Instant,
  type Scalar,
} from './typed/scalar.ts'
export type * from './typed/typed-ast.ts'
export type * from './typed/typed-query.ts'
export type { Family, ValueType } from './typed/value-type.ts'

export type { VisitBudget } from './evaluate/compile-expression.ts'
export { compileComparator, compilePredicate } from './evaluate/compile-predicate.ts'
export { compileSqlFilter, compileSqlOrder, type SqlFilter } from './sql/compile-sql.ts'
export type { SqlFragment, SqlParameter } from './sql/sql-fragment.ts'
export type { SqlMapping } from './sql/sql-mapping.ts'

export { toServiceDocument, type ServiceDocument } from './metadata/service-document.ts'
export { writeCsdlJson } from './metadata/write-csdl-json.ts'
export { writeEdmx } from './metadata/write-edmx.ts'
