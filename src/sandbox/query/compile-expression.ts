import {
  type CountNode,
  type HasNode,
  type InNode,
  isInteger,
  type ItemSource,
  type LambdaNode,
  type LogicalNode,
  type MemberNode,
  type ModelIndex,
  parseDate,
  parseDuration,
  parseEnum,
  parseInstant,
  parseNumber,
  parseTimeOfDay,
  QueryError,
  type Scalar,
  type TypedExpr,
  type TypedOrderBy,
  type ValueType,
} from '../../odata/index.ts'
import {
  compareScalars,
  computeArithmetic,
  implementCall,
  isInstant,
  orderScalars,
  toNumber,
} from './operations.ts'

/**
 * Compiles a checked condition to a test of entities in JSON form. The entities must include the navigation properties that the condition
 * uses. A condition that evaluates to null does not match (OData URL conventions 5.1.2).
 *
 * @param budget - maximum number of collection items that the test may visit, over all entities
 * @throws QueryError from the test once the budget is spent
 */
export function compilePredicate(
  filter: TypedExpr,
  index: ModelIndex,
  budget: VisitBudget,
): (entity: unknown) => boolean {
  const evaluate = compileExpression(filter, index, budget)
  return (entity) => evaluate([entity]) === true
}

/** Compares two values for a sort. Nulls and values that have no order come first (OData protocol 11.2.6.2). */
function order(left: Scalar, right: Scalar): number {
  const isFirst = (value: Scalar): boolean => value === null || Number.isNaN(value)
  if (isFirst(left) || isFirst(right)) return Number(isFirst(right)) - Number(isFirst(left))
  return orderScalars(left, right)
}

/** Compiles checked `$orderby` items to a comparison function for a stable sort. `budget` has the same meaning as in `compilePredicate`. */
export function compileComparator(
  items: readonly TypedOrderBy[],
  index: ModelIndex,
  budget: VisitBudget,
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

/** A function that evaluates an expression. `variables` contains the JSON values of the variables, by the number of the variable. */
type Evaluate = (variables: unknown[]) => Scalar

/**
 * The number of collection items that may still be visited. The visits of nested lambdas multiply, so a short condition can require a very
 * large number of visits. All expressions of a request may share one budget.
 */
export interface VisitBudget {
  left: number
}

type Compile = (node: TypedExpr) => Evaluate

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** Compiles a path to a function that returns the JSON value, or `undefined` if the path leads through null or a missing member. */
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

/** Compiles `and` or `or` in three-valued logic, in which null means unknown (OData URL conventions 5.1.1.1.7 and 8). */
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

/** Returns a function that visits the items that match the filters, each as the value of the variable, until `visit` returns true. */
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
      if (budget.left < 0) throw new QueryError('The query visits too many items', collection.position)
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

/** Compiles a checked expression to a function of JSON values. The function throws `QueryError` once the budget is spent. */
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
      case 'any':
      case 'all':
        return compileLambda(node, compile, budget)
      case 'count':
        return compileCount(node, compile, budget)
    }
  }
  return compile(root)
}

/** Converts the JSON value of a property to a scalar, or to null if the value is absent or has the wrong type. */
type ReadScalar = (raw: unknown) => Scalar

const readText =
  (parse: (text: string) => Scalar | undefined): ReadScalar =>
  (raw) =>
    typeof raw === 'string' ? (parse(raw) ?? null) : null

/** Reads a number, which may be a JSON string (IEEE754Compatible). A string can also contain INF or NaN. */
function readNumber(raw: unknown): Scalar {
  if (typeof raw === 'number') return raw
  if (typeof raw !== 'string' || raw === '') return null
  return parseNumber(raw) ?? null
}

function scalarReader(type: ValueType, index: ModelIndex): ReadScalar {
  switch (type.family) {
    case 'boolean':
      return (raw) => (typeof raw === 'boolean' ? raw : null)
    case 'number':
      return readNumber
    case 'string':
      return (raw) => (typeof raw === 'string' ? raw : null)
    case 'guid':
      return readText((text) => text.toLowerCase())
    case 'binary':
      return readText((text) => text.replace(/=+$/, '').replaceAll('+', '-').replaceAll('/', '_'))
    case 'instant':
      return readText(parseInstant)
    case 'date':
      return readText(parseDate)
    case 'timeOfDay':
      return readText(parseTimeOfDay)
    case 'duration':
      return readText(parseDuration)
    case 'enum': {
      const info = index.findType(type.name)
      const members = info?.kind === 'enum' ? info.valueByMember : new Map<string, number>()
      return (raw) => (typeof raw === 'string' ? (parseEnum(raw, members) ?? null) : readNumber(raw))
    }
    case 'structured':
      // A structured value is compared only with null, so any value that is not null can stand for it.
      return (raw) => (raw === null || raw === undefined ? null : true)
    case 'null':
      return () => null
  }
}

const minuteMs = 60_000

const isoUtc = (ms: number): string => {
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? '' : date.toISOString()
}

const withoutFraction = (text: string): string => (text.endsWith('.000') ? text.slice(0, -4) : text)

function formatInstant(ms: number, offsetMinutes: number): string {
  const seconds = withoutFraction(isoUtc(ms + offsetMinutes * minuteMs).slice(0, -1))
  if (offsetMinutes === 0) return `${seconds}Z`
  const total = Math.abs(offsetMinutes)
  const pad = (part: number): string => String(part).padStart(2, '0')
  return `${seconds}${offsetMinutes < 0 ? '-' : '+'}${pad(Math.floor(total / 60))}:${pad(total % 60)}`
}

function formatDuration(ms: number): string {
  const seconds = Math.abs(ms) / 1000
  const parts = [
    [Math.floor(seconds / 3600), 'H'],
    [Math.floor(seconds / 60) % 60, 'M'],
    [seconds % 60, 'S'],
  ] as const
  const text = parts.map(([value, unit]) => (value === 0 ? '' : `${value}${unit}`)).join('')
  return `${ms < 0 ? '-' : ''}PT${text === '' ? '0S' : text}`
}

const formatNumber = (value: number): string => {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value)
  return value > 0 ? 'INF' : '-INF'
}

function formatScalar(value: Scalar, type: ValueType, memberNames: ReadonlyMap<number, string>): string {
  if (isInstant(value)) return formatInstant(value.ms, value.offsetMinutes)
  const number = toNumber(value)
  switch (type.family) {
    case 'number':
      return formatNumber(number)
    case 'enum':
      return memberNames.get(number) ?? formatNumber(number)
    case 'date':
      return isoUtc(number).slice(0, 10)
    case 'timeOfDay':
      return withoutFraction(isoUtc(number).slice(11, -1))
    case 'duration':
      return formatDuration(number)
    default:
      return String(value)
  }
}

function toNumericType(value: number, type: ValueType): number {
  return isInteger(type) ? Math.trunc(value) : value
}

/**
 * Returns the function of a cast (OData URL conventions 5.1.1.10.1). The function converts any value to text, text to a value of the type, and
 * numbers to other numeric types. The function returns null for a text that is not a value of the type.
 */
function castScalar(from: ValueType, to: ValueType, index: ModelIndex): (value: Scalar) => Scalar {
  const info = index.findType(from.name)
  const members = info?.kind === 'enum' ? [...info.valueByMember] : []
  const memberNames = new Map(members.map(([name, value]) => [value, name]))
  const read = scalarReader(to, index)
  const parse = (text: string): Scalar => {
    if (to.family === 'boolean') return text === 'true' || text === 'false' ? text === 'true' : null
    const value = read(text)
    return typeof value === 'number' && to.family === 'number' ? toNumericType(value, to) : value
  }
  return (value) => {
    if (value === null) return null
    if (to.family === 'string') return formatScalar(value, from, memberNames)
    if (from.family === 'string') return typeof value === 'string' ? parse(value) : null
    return to.family === 'number' ? toNumericType(toNumber(value), to) : value
  }
}
