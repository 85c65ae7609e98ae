import { QueryError } from '../query-error.ts'
import type { ModelIndex } from '../typed/model-index.ts'
import type { Scalar } from '../typed/scalar.ts'
import type {
  CaseNode,
  CountNode,
  HasNode,
  InNode,
  ItemSource,
  LambdaNode,
  LogicalNode,
  MemberNode,
  TypedExpr,
  TypedOrderBy,
} from '../typed/typed-ast.ts'
import { castScalar, scalarReader } from './cast-scalar.ts'
import { compareScalars, computeArithmetic, implementCall, orderScalars, toNumber } from './operations.ts'

const unlimited = (): VisitBudget => ({ left: Infinity })

/**
 * Compiles a checked condition into a test of entities in their JSON form, navigation properties included where the
 * condition follows them. A condition that is null for an entity does not hold (OData URL conventions 5.1.2).
 *
 * @param budget - visits of items of collections, over all entities. Default: without limit
 * @throws QueryError from the test, once the budget is spent
 */
export function compilePredicate(
  filter: TypedExpr,
  index: ModelIndex,
  budget = unlimited(),
): (entity: unknown) => boolean {
  const evaluate = compileExpression(filter, index, budget)
  return (entity) => evaluate([entity]) === true
}

/** Null, and values without an order, come first (OData protocol 11.2.6.2). */
function order(left: Scalar, right: Scalar): number {
  const isFirst = (value: Scalar): boolean => value === null || Number.isNaN(value)
  if (isFirst(left) || isFirst(right)) return Number(isFirst(right)) - Number(isFirst(left))
  return orderScalars(left, right)
}

/**
 * Compiles checked `$orderby` items into a comparison of entities in their JSON form, for a stable sort; `budget` is as
 * in `compilePredicate`.
 */
export function compileComparator(
  items: readonly TypedOrderBy[],
  index: ModelIndex,
  budget = unlimited(),
): (left: unknown, right: unknown) => number {
  const keys = items.map(({ expression, direction }) => ({
    evaluate: compileExpression(expression, index, budget),
    sign: direction === 'desc' ? -1 : 1,
  }))
  return (left, right) => {
    for (const { evaluate, sign } of keys) {
      const result = order(evaluate([left]), evaluate([right]))
      if (result !== 0) return result * sign
    }
    return 0
  }
}

/** A compiled expression: the JSON values of the variables in, by number, its value out. */
type Evaluate = (variables: unknown[]) => Scalar

/**
 * How many items of collections may still be visited; each visit takes one. Lambdas in lambdas multiply, so a short
 * condition can ask for more visits than anyone can wait for. One budget may serve all expressions of a request.
 */
export interface VisitBudget {
  left: number
}

type Compile = (node: TypedExpr) => Evaluate

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** Follows a path through JSON; a step through null or a missing member gives undefined. */
function rawValue({ variable, path }: MemberNode): (variables: readonly unknown[]) => unknown {
  return (variables) => {
    let value = variables[variable]
    for (const name of path) value = isObject(value) ? value[name] : undefined
    return value
  }
}

function compileMember(node: MemberNode, index: ModelIndex): Evaluate {
  const raw = rawValue(node)
  const read = scalarReader(node.type, index)
  return (variables) => read(raw(variables))
}

/** Three-valued: null is unknown (OData URL conventions 5.1.1.1.7 and 8). */
function compileLogical({ kind, operands }: LogicalNode, compile: Compile): Evaluate {
  const decisive = kind === 'or'
  const parts = operands.map(compile)
  return (variables) => {
    let result: Scalar = !decisive
    for (const part of parts) {
      const value = part(variables)
      if (value === decisive) return decisive
      if (value === null) result = null
    }
    return result
  }
}

function compileIn({ operand, items }: InNode, compile: Compile): Evaluate {
  const evaluate = compile(operand)
  const choices = items.map(compile)
  return (variables) => {
    const value = evaluate(variables)
    return choices.some((choice) => compareScalars('eq', value, choice(variables)))
  }
}

function compileHas({ left, right }: HasNode, compile: Compile): Evaluate {
  const evaluate = compile(left)
  const flags = compile(right)
  return (variables) => {
    const value = evaluate(variables)
    const wanted = flags(variables)
    if (value === null || wanted === null) return null
    return (toNumber(value) & toNumber(wanted)) === toNumber(wanted)
  }
}

function compileCase({ branches }: CaseNode, compile: Compile): Evaluate {
  const compiled = branches.map(({ when, then }) => ({ when: compile(when), then: compile(then) }))
  return (variables) => {
    for (const { when, then } of compiled) if (when(variables) === true) return then(variables)
    return null
  }
}

/** Visits the items of a collection that its filters let through, bound to their variable, until `visit` says stop. */
function compileItems(
  { collection, variable, filters }: ItemSource,
  compile: Compile,
  budget: VisitBudget,
): (variables: unknown[], visit: () => boolean) => void {
  const raw = rawValue(collection)
  const conditions = filters.map(compile)
  return (variables, visit) => {
    const items = raw(variables)
    if (!Array.isArray(items)) return
    for (const item of items as readonly unknown[]) {
      budget.left -= 1
      if (budget.left < 0) throw new QueryError('Too many items would be visited', collection.position)
      variables[variable] = item
      if (conditions.every((condition) => condition(variables) === true) && visit()) return
    }
  }
}

function compileLambda(
  { kind, source, predicate }: LambdaNode,
  compile: Compile,
  budget: VisitBudget,
): Evaluate {
  const items = compileItems(source, compile, budget)
  const condition = predicate === undefined ? undefined : compile(predicate)
  const wanted = kind === 'any'
  return (variables) => {
    let found = false
    items(variables, () => {
      const holds = condition === undefined || condition(variables) === true
      found = holds === wanted
      return found
    })
    return found === wanted
  }
}

function compileCount({ source }: CountNode, compile: Compile, budget: VisitBudget): Evaluate {
  const items = compileItems(source, compile, budget)
  return (variables) => {
    let count = 0
    items(variables, () => {
      count += 1
      return false
    })
    return count
  }
}

/**
 * Compiles a checked expression into a function on JSON values; the model gives the notation of values. The function
 * throws `QueryError` once the budget is spent.
 */
function compileExpression(root: TypedExpr, index: ModelIndex, budget: VisitBudget): Evaluate {
  const compile = (node: TypedExpr): Evaluate => {
    switch (node.kind) {
      case 'constant':
        return () => node.value
      case 'member':
        return compileMember(node, index)
      case 'compare': {
        const left = compile(node.left)
        const right = compile(node.right)
        return (variables) => compareScalars(node.operator, left(variables), right(variables))
      }
      case 'arithmetic': {
        const left = compile(node.left)
        const right = compile(node.right)
        return (variables) => computeArithmetic(node, left(variables), right(variables))
      }
      case 'and':
      case 'or':
        return compileLogical(node, compile)
      case 'not': {
        const operand = compile(node.operand)
        return (variables) => {
          const value = operand(variables)
          return value === null ? null : value === false
        }
      }
      case 'negate': {
        const operand = compile(node.operand)
        return (variables) => {
          const value = operand(variables)
          return value === null ? null : -toNumber(value)
        }
      }
      case 'call': {
        const apply = implementCall(node)
        const values = node.arguments.map(compile)
        return (variables) => apply(...values.map((value) => value(variables)))
      }
      case 'cast': {
        const operand = compile(node.operand)
        const convert = castScalar(node.operand.type, node.type, index)
        return (variables) => convert(operand(variables))
      }
      case 'in':
        return compileIn(node, compile)
      case 'has':
        return compileHas(node, compile)
      case 'case':
        return compileCase(node, compile)
      case 'any':
      case 'all':
        return compileLambda(node, compile, budget)
      case 'count':
        return compileCount(node, compile, budget)
    }
  }
  return compile(root)
}
