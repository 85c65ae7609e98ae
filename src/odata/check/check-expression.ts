import type { BinaryExpr, CaseExpr, Expr, ListExpr, TypeExpr } from '../ast.ts'
import { checkArithmetic, checkNegation } from './check-arithmetic.ts'
import { checkCall } from './check-call.ts'
import { checkComparison, checkHas, comparable } from './check-comparison.ts'
import { checkEnumLiteral, checkLiteral } from './check-literal.ts'
import { checkPath } from './check-path.ts'
import {
  booleanType,
  describeType,
  nullConstant,
  requireBoolean,
  requireSingle,
  type Scope,
} from './check-scope.ts'
import type { ModelIndex } from '../typed/model-index.ts'
import { QueryError } from '../query-error.ts'
import type { InNode, LambdaNode, MemberNode, TypedExpr } from '../typed/typed-ast.ts'
import { nullType, primitive, type ValueType } from '../typed/value-type.ts'

const maxAliasUses = 100

/** The input of a check besides the expression and the model. */
export interface CheckSettings {
  /** Values of parameter aliases, by name without the `@`. Default: none. */
  readonly aliases?: ReadonlyMap<string, Expr>
  /** The value of `now()`, milliseconds since 1970. Default: a query with `now()` is refused. */
  readonly now?: number
}

/**
 * Checks an expression against an entity type: resolves names, refuses unknown properties and operands of the wrong
 * type, promotes literals and puts the values of aliases in their places.
 *
 * @param typeName - qualified name of the type that the expression's paths start from
 * @throws QueryError (`ADP_QUERY`, 400) with the character position
 */
export function checkExpression(
  expression: Expr,
  typeName: string,
  index: ModelIndex,
  settings: CheckSettings = {},
): TypedExpr {
  let variables = 0
  let aliasUses = 0
  const it: MemberNode = {
    kind: 'member',
    variable: 0,
    path: [],
    nullable: false,
    type: index.valueType({ type: typeName, collection: false }),
    position: expression.position,
  }
  return check(expression, {
    index,
    check,
    instance: it,
    it,
    variables: new Map(),
    aliases: settings.aliases ?? new Map<string, Expr>(),
    openAliases: new Set(),
    newVariable: () => (variables += 1),
    countAliasUse(position) {
      aliasUses += 1
      if (aliasUses > maxAliasUses) throw new QueryError('Aliases are used too often', position)
    },
    now: settings.now,
  })
}

/** As `checkExpression`, for a condition: the result is a truth value or null. */
export function checkFilter(
  filter: Expr,
  typeName: string,
  index: ModelIndex,
  settings: CheckSettings = {},
): TypedExpr {
  return requireBoolean(checkExpression(filter, typeName, index, settings))
}

function check(node: Expr, scope: Scope): TypedExpr {
  const { position } = node
  switch (node.kind) {
    case 'literal':
      return checkLiteral(node)
    case 'enum':
      return checkEnumLiteral(node, scope.index)
    case 'path':
      return checkPath(node, scope)
    case 'and':
    case 'or':
      return {
        kind: node.kind,
        operands: node.operands.map((operand) => requireBoolean(check(operand, scope))),
        type: booleanType,
        position,
      }
    case 'not':
      return { kind: 'not', operand: requireBoolean(check(node.operand, scope)), type: booleanType, position }
    case 'negate':
      return checkNegation(check(node.operand, scope), position)
    case 'binary':
      return checkBinary(node, scope)
    case 'call':
      return checkCall(node, scope)
    case 'cast':
    case 'isof':
      return checkTypeExpr(node, scope)
    case 'case':
      return checkCase(node, scope)
    case 'list':
    case 'array':
    case 'object':
      throw new QueryError(
        `${node.kind === 'object' ? 'An object' : 'A list'} is not possible here`,
        position,
      )
  }
}

function checkBinary(node: BinaryExpr, scope: Scope): TypedExpr {
  if (node.operator === 'in') return checkIn(node, scope)
  const left = requireSingle(check(node.left, scope))
  const right = requireSingle(check(node.right, scope))
  switch (node.operator) {
    case 'has':
      return checkHas(left, right, scope.index)
    case 'add':
    case 'sub':
    case 'mul':
    case 'div':
    case 'divby':
    case 'mod':
      return checkArithmetic(node.operator, left, right)
    case 'eq':
    case 'ne':
    case 'gt':
    case 'ge':
    case 'lt':
    case 'le':
      return checkComparison(node.operator, left, right, scope.index)
  }
}

function checkIn(node: BinaryExpr, scope: Scope): InNode | LambdaNode {
  const { position } = node
  const operand = requireSingle(check(node.left, scope))
  if (node.right.kind !== 'list' && node.right.kind !== 'array')
    return checkInCollection(operand, node.right, scope)
  const list: Pick<ListExpr, 'items'> | { readonly items: readonly Expr[] } = node.right
  let wanted = operand
  const items = list.items.map((item) => {
    const [promoted, second] = comparable(wanted, check(item, scope), scope.index, false)
    wanted = promoted
    return second
  })
  return { kind: 'in', operand: wanted, items, type: booleanType, position }
}

/** `x in Collection` asks whether any item equals `x`. */
function checkInCollection(operand: TypedExpr, right: Expr, scope: Scope): LambdaNode {
  const collection = check(right, scope)
  if (collection.kind !== 'member' || !collection.type.collection) {
    throw new QueryError(
      `Expected a list or a collection, found ${describeType(collection.type)}`,
      collection.position,
    )
  }
  const variable = scope.newVariable()
  const type = { ...collection.type, collection: false }
  const item: MemberNode = { ...collection, variable, path: [], type }
  const predicate = checkComparison('eq', operand, item, scope.index)
  const source = { collection, variable, filters: [] }
  return { kind: 'any', source, predicate, type: booleanType, position: operand.position }
}

function findPrimitive(typeName: string, index: ModelIndex): ValueType | undefined {
  const found = index.findType(typeName)
  return found?.kind === 'primitive' ? primitive(found.name) : undefined
}

/** Types never derive from one another here, so `isof` asks whether there is a value of the declared type. */
function checkTypeExpr(node: TypeExpr, scope: Scope): TypedExpr {
  const { position, typeName } = node
  const operand = requireSingle(node.operand === undefined ? scope.instance : check(node.operand, scope))
  const target = scope.index.findType(typeName)
  if (target === undefined) throw new QueryError(`There is no type ${typeName}`, position)
  const same = target.name === operand.type.name
  if (node.kind === 'isof') {
    if (!same) return { kind: 'constant', value: false, type: booleanType, position }
    const right = nullConstant(position)
    return { kind: 'compare', operator: 'ne', left: operand, right, type: booleanType, position }
  }
  if (same) return operand
  const type = findPrimitive(typeName, scope.index)
  const from = operand.type.family
  const convertible =
    type !== undefined &&
    (from === 'null' || from === type.family || type.family === 'string' || from === 'string') &&
    from !== 'structured'
  if (!convertible) {
    throw new QueryError(`${describeType(operand.type)} cannot be cast to ${typeName}`, position)
  }
  return { kind: 'cast', operand, type, position }
}

function checkCase(node: CaseExpr, scope: Scope): TypedExpr {
  const branches = node.branches.map(({ when, then }) => ({
    when: requireBoolean(check(when, scope)),
    then: requireSingle(check(then, scope)),
  }))
  let type = nullType
  for (const { then } of branches) {
    if (type.family === 'null') type = then.type
    const fits = then.type.family === 'null' || then.type.family === type.family
    if (!fits)
      throw new QueryError(`Expected ${describeType(type)}, found ${describeType(then.type)}`, then.position)
  }
  return { kind: 'case', branches, type, position: node.position }
}
