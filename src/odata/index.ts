/**
 * OData v4 as data, the entry `markbridge/odata` of the package: texts to syntax trees and back (`parse…`, `print…`), trees checked
 * against a model (`check…`), checked trees as functions on JSON (`compile…`), a model as `$metadata` (`write…`). Knows no entity of
 * any service and does no I/O. Errors: `QueryError` with the option and the character position.
 */
export type * from './ast.ts'
export type * from './csdl.ts'
export { inOption, QueryError } from './query-error.ts'

export type { QueryLimits } from './parse/cursor.ts'
export { parseExpand, parseFilter, parseKey, parseQuery, parseResourcePath } from './parse/parse-query.ts'
export { printFilter, printQuery, printSelection } from './print.ts'

export { createModelIndex, type ModelIndex, type StructuredType, type TypeInfo } from './typed/model-index.ts'
export { isGuid, parseDate, parseInstant, type Instant, type Scalar, type ValueType } from './typed/scalar.ts'
export type * from './typed/typed-ast.ts'
export { checkFilter, type CheckSettings } from './check/check-expression.ts'
export { checkQuery } from './check/check-query.ts'

export { compileComparator, compilePredicate, type VisitBudget } from './evaluate/compile-expression.ts'

export { toServiceDocument, writeEdmx } from './metadata/write-edmx.ts'
