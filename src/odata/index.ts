/**
 * Parses (`parse…`), prints (`print…`) and checks (`check…`) OData v4 queries, and writes a model as `$metadata` (`write…`). The module
 * knows no entity of a particular service and does no I/O. Its functions throw `QueryError` with the option and the character position.
 */
export type * from './ast.ts'
export type * from './csdl.ts'
export { inOption, QueryError } from './query-error.ts'

export {
  parseExpand,
  parseFilter,
  parseJsonQuery,
  parseKey,
  parseQuery,
  parseResourcePath,
} from './parse/parse-query.ts'
export { printFilter, printQuery, printSelection } from './print.ts'

export { createModelIndex, type ModelIndex, type StructuredType, type TypeInfo } from './typed/model-index.ts'
export {
  type Instant,
  isGuid,
  isInteger,
  parseDate,
  parseDuration,
  parseEnum,
  parseInstant,
  parseNumber,
  parseTimeOfDay,
  type Scalar,
  TICKS_OF_MS,
  toInstant,
  type ValueType,
} from './typed/scalar.ts'
export type * from './typed/typed-ast.ts'
export { checkQuery, refuseCollectionOptions } from './check/check-query.ts'

export { toServiceDocument, writeEdmx } from './metadata/write-edmx.ts'
