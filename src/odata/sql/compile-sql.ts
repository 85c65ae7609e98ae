import type { ModelIndex } from '../typed/model-index.ts'
import type { CompareNode, InNode, TypedExpr } from '../typed/typed-ast.ts'
import type { TypedOrderBy } from '../typed/typed-query.ts'
import { bind, build, joinBalanced, plain, type SqlFragment, type SqlTerm } from './sql-fragment.ts'
import type { SqlMapping } from './sql-mapping.ts'
import { isNullable, sqlValue, type SqlContext } from './sql-value.ts'

/** A filter divided between the store and the caller. */
export interface SqlFilter {
  /** The condition for the WHERE clause; `1` where nothing could be translated. */
  readonly where: SqlFragment
  /** The rest to test on each entity that `where` selects, with `compilePredicate`; often empty. */
  readonly rest?: TypedExpr
}

const sqlOperators = { eq: '=', ne: '<>', gt: '>', ge: '>=', lt: '<', le: '<=' } as const

const isNull = (node: TypedExpr): boolean => node.kind === 'constant' && node.value === null

/** Only equality means the same for an enumeration that is stored by name. */
const hasStoredOrder = (node: TypedExpr): boolean => node.type.family !== 'enum'

function compareWithNull(node: CompareNode, other: TypedExpr, context: SqlContext): SqlTerm | undefined {
  const value = isNull(other) ? plain('NULL') : sqlValue(other, context)
  if (node.operator === 'gt' || node.operator === 'lt') return value && plain('0')
  return build(node.operator === 'ne' ? '({} IS NOT NULL)' : '({} IS NULL)', value)
}

function sqlCompare(node: CompareNode, exact: boolean, context: SqlContext): SqlTerm | undefined {
  const { operator, left, right } = node
  if (isNull(left) || isNull(right)) return compareWithNull(node, isNull(right) ? left : right, context)
  if (operator !== 'eq' && operator !== 'ne' && !(hasStoredOrder(left) && hasStoredOrder(right)))
    return undefined
  const first = sqlValue(left, context)
  const second = sqlValue(right, context)
  const maybeNull = isNullable(left) || isNullable(right)
  const bothMaybeNull = isNullable(left) && isNullable(right)
  if (operator === 'ne') return build(maybeNull ? '({} IS NOT {})' : '({} <> {})', first, second)
  if (operator === 'eq') {
    // Plain "=" where NULL may mean false: SQLite plans it better than IS.
    const plainEqual = exact ? !maybeNull : !bothMaybeNull
    return build(plainEqual ? '({} = {})' : '({} IS {})', first, second)
  }
  const compared = build(`({} ${sqlOperators[operator]} {})`, first, second)
  const settled = exact && maybeNull ? build('ifnull({}, 0)', compared) : compared
  // null equals null, so it is also "at least" null.
  if (!bothMaybeNull || operator === 'gt' || operator === 'lt') return settled
  return build('({} OR ({} IS NULL AND {} IS NULL))', settled, first, second)
}

function sqlIn({ operand, items }: InNode, exact: boolean, context: SqlContext): SqlTerm | undefined {
  const value = sqlValue(operand, context)
  if (value === undefined) return undefined
  const present = items.filter((item) => !isNull(item))
  const choices = present.map((item) => sqlValue(item, context))
  if (items.some((item) => item.kind !== 'constant')) return undefined
  const list = build(`({} IN (${choices.map(() => '{}').join(', ')}))`, value, ...choices)
  const settled = exact && isNullable(operand) ? build('ifnull({}, 0)', list) : list
  return present.length === items.length ? settled : build('({} IS NULL OR {})', value, settled)
}

/** A condition as SQL, or `undefined` where SQLite has no equal of it. */
function sqlCondition(node: TypedExpr, exact: boolean, context: SqlContext): SqlTerm | undefined {
  switch (node.kind) {
    case 'compare':
      return sqlCompare(node, exact, context)
    case 'in':
      return sqlIn(node, exact, context)
    case 'not':
      return build('(NOT {})', sqlCondition(node.operand, true, context))
    case 'and':
    case 'or': {
      const terms: SqlTerm[] = []
      for (const operand of node.operands) {
        const term = sqlCondition(operand, exact, context)
        if (term === undefined) return undefined
        terms.push(term)
      }
      return joinBalanced(terms, node.kind === 'and' ? 'AND' : 'OR')
    }
    default:
      return sqlValue(node, context)
  }
}

function createContext(mapping: SqlMapping, index: ModelIndex): SqlContext {
  const context: SqlContext = {
    mapping,
    index,
    condition: (node, exact) => sqlCondition(node, exact, context),
  }
  return context
}

/**
 * Translates a checked filter into a WHERE condition for SQLite. Values become parameters and columns come from the
 * mapping, so no text of the client is ever part of the SQL. What SQLite cannot decide exactly as the predicate does
 * (collections, case mapping, patterns, casts, properties without a column) is returned as `rest`, one operand of a
 * top-level `and` at a time: a date range still selects by index when the rest needs a function.
 */
export function compileSqlFilter(filter: TypedExpr, mapping: SqlMapping, index: ModelIndex): SqlFilter {
  const context = createContext(mapping, index)
  const terms: SqlTerm[] = []
  const left: TypedExpr[] = []
  for (const operand of filter.kind === 'and' ? filter.operands : [filter]) {
    const term = sqlCondition(operand, false, context)
    if (term === undefined) left.push(operand)
    else terms.push(term)
  }
  const joined = joinBalanced(terms, 'AND')
  if (joined === undefined) return { where: plain('1'), rest: filter }
  const where: SqlFragment = { sql: joined.sql, parameters: joined.parameters }
  const [first] = left
  if (first === undefined) return { where }
  return { where, rest: left.length === 1 ? first : { ...filter, kind: 'and', operands: left } }
}

/**
 * Translates checked `$orderby` items into the terms of an ORDER BY clause, in the same order as `compileComparator`;
 * `undefined` where one of them has no equal in SQLite.
 */
export function compileSqlOrder(
  items: readonly TypedOrderBy[],
  mapping: SqlMapping,
  index: ModelIndex,
): SqlFragment | undefined {
  const context = createContext(mapping, index)
  const terms = items.map(({ expression, direction }) => {
    const value = hasStoredOrder(expression) ? sqlValue(expression, context) : undefined
    // A constant would be read as the number of a result column.
    return build(
      direction === 'desc' ? '({}) DESC' : '({}) ASC',
      expression.kind === 'constant' ? bind(0) : value,
    )
  })
  const joined = build(terms.map(() => '{}').join(', '), ...terms)
  return joined === undefined ? undefined : { sql: joined.sql, parameters: joined.parameters }
}
