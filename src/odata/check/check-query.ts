import type { Expr, OrderByItem, QueryOptions } from '../ast.ts'
import { QueryError } from '../query-error.ts'
import type { ModelIndex, StructuredType } from '../typed/model-index.ts'
import type { TypedOrderBy, TypedQuery } from '../typed/typed-query.ts'
import { checkExpand } from './check-expand.ts'
import { checkExpression, checkFilter, type CheckSettings } from './check-expression.ts'
import { describeType } from './check-scope.ts'
import { checkSelect } from './check-select.ts'

/** Options that parse but that nothing here can answer. */
const unsupported = ['compute', 'index', 'deltatoken'] as const satisfies readonly (keyof QueryOptions)[]

function inOption<T>(option: string, check: () => T): T {
  try {
    return check()
  } catch (error) {
    throw error instanceof QueryError ? error.inOption(option) : error
  }
}

function checkOrderBy(
  items: readonly OrderByItem[],
  type: StructuredType,
  index: ModelIndex,
  settings: CheckSettings,
): readonly TypedOrderBy[] {
  return items.map(({ expression, direction }) => {
    const typed = checkExpression(expression, type.name, index, settings)
    if (typed.type.collection || typed.type.family === 'structured') {
      throw new QueryError(`${describeType(typed.type)} has no order`, typed.position)
    }
    return { expression: typed, direction }
  })
}

function checkOptions(
  options: QueryOptions,
  type: StructuredType,
  index: ModelIndex,
  outer: CheckSettings,
): TypedQuery {
  const aliases = new Map<string, Expr>([...(outer.aliases ?? []), ...(options.aliases ?? [])])
  const settings: CheckSettings = { ...outer, aliases }
  for (const name of unsupported) {
    if (options[name] !== undefined) throw new QueryError('The option is not supported', 0, `$${name}`)
  }
  const { filter, search, orderby, select, expand, top, skip, skiptoken } = options
  const selection = select && inOption('$select', () => checkSelect(select, type, index))
  const nested = (inner: QueryOptions, target: StructuredType): TypedQuery =>
    checkOptions(inner, target, index, settings)
  return {
    ...(filter && { filter: inOption('$filter', () => checkFilter(filter, type.name, index, settings)) }),
    ...(search && { search }),
    orderby: orderby ? inOption('$orderby', () => checkOrderBy(orderby, type, index, settings)) : [],
    ...(selection && { select: selection }),
    expand: expand ? inOption('$expand', () => checkExpand(expand, type, index, nested)) : [],
    ...(top !== undefined && { top }),
    ...(skip !== undefined && { skip }),
    count: options.count ?? false,
    ...(skiptoken !== undefined && { skiptoken }),
  }
}

/**
 * Checks the options of a request against the entity type that it is about: names, operand types, what can be
 * selected, ordered and expanded, at every level.
 *
 * @param typeName - qualified name of the entity type
 * @throws QueryError (`ADP_QUERY`, 400) with the option and the character position in it
 */
export function checkQuery(
  options: QueryOptions,
  typeName: string,
  index: ModelIndex,
  settings: CheckSettings = {},
): TypedQuery {
  return checkOptions(options, index.structured(typeName), index, settings)
}
