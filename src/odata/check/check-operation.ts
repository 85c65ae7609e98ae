import type { CallExpr, EnumLiteral, Literal } from '../ast.ts'
import { QueryError } from '../query-error.ts'
import type { EnumTypeInfo, ModelIndex } from '../typed/model-index.ts'
import {
  type Family,
  isInteger,
  booleanType,
  describeType,
  nullType,
  parseDate,
  parseDuration,
  parseEnum,
  parseInstant,
  parseNumber,
  parseTimeOfDay,
  primitive,
  type Scalar,
  type ValueType,
} from '../typed/scalar.ts'
import type {
  Arithmetic,
  ArithmeticNode,
  CompareNode,
  Comparison,
  ConstantNode,
  HasNode,
  TypedExpr,
  UnaryNode,
} from '../typed/typed-ast.ts'

function hint(left: TypedExpr, right: TypedExpr): string {
  const families = [left.type.family, right.type.family]
  if (families.includes('guid') && families.includes('string')) return '. Write the guid without apostrophes'
  if (families.includes('instant') && families.includes('string'))
    return '. Write the date without apostrophes'
  return ''
}

function mismatch(left: TypedExpr, right: TypedExpr): never {
  const place = right.kind === 'constant' || left.kind !== 'constant' ? right : left
  const types = `${describeType(left.type)} cannot be compared with ${describeType(right.type)}`
  throw new QueryError(types + hint(left, right), place.position)
}

/** Converts operands to one type. Throws `QueryError` if they cannot be compared. Structured values can only be compared with null. */
export function comparable(
  left: TypedExpr,
  right: TypedExpr,
  index: ModelIndex,
  ordered: boolean,
): readonly [TypedExpr, TypedExpr] {
  const first = promote(left, right.type, index)
  const second = promote(right, left.type, index)
  if (first.type.collection || second.type.collection) mismatch(first, second)
  const families = [first.type.family, second.type.family]
  if (families.includes('structured') && (ordered || !families.includes('null'))) mismatch(first, second)
  if (families.includes('null')) return [first, second]
  const sameEnum = families[0] !== 'enum' || first.type.name === second.type.name
  if (families[0] !== families[1] || !sameEnum) mismatch(first, second)
  return [first, second]
}

export function checkComparison(
  operator: Comparison,
  left: TypedExpr,
  right: TypedExpr,
  index: ModelIndex,
): CompareNode {
  const ordered = operator !== 'eq' && operator !== 'ne'
  const [first, second] = comparable(left, right, index, ordered)
  return { kind: 'compare', operator, left: first, right: second, type: booleanType, position: left.position }
}

export function checkHas(left: TypedExpr, right: TypedExpr, index: ModelIndex): HasNode {
  const [first, second] = comparable(left, right, index, false)
  for (const { type, position } of [first, second]) {
    if (type.family !== 'enum' && type.family !== 'null') {
      throw new QueryError(`Expected an enumeration value, found ${describeType(type)}`, position)
    }
  }
  return { kind: 'has', left: first, right: second, type: booleanType, position: left.position }
}

type Operator = Arithmetic | 'divby'

const instant = primitive('Edm.DateTimeOffset')
const date = primitive('Edm.Date')
const duration = primitive('Edm.Duration')

/** The result types of arithmetic with dates, times and durations (OData URL conventions 5.1.1.2). */
const timeResults: Readonly<Record<string, ValueType>> = {
  'instant add duration': instant,
  'instant sub duration': instant,
  'instant sub instant': duration,
  'date add duration': date,
  'date sub duration': date,
  'date sub date': duration,
  'duration add duration': duration,
  'duration sub duration': duration,
  'duration mul number': duration,
  'number mul duration': duration,
  'duration div number': duration,
  'duration divby number': duration,
}

function numberResult(operator: Operator, left: ValueType, right: ValueType): ValueType {
  if (isInteger(left) && isInteger(right) && operator !== 'divby') return primitive('Edm.Int64')
  const floating = [left.name, right.name].some((name) => name === 'Edm.Double' || name === 'Edm.Single')
  return primitive(floating ? 'Edm.Double' : 'Edm.Decimal')
}

function resultType(operator: Operator, left: ValueType, right: ValueType): ValueType | undefined {
  if (left.collection || right.collection) return undefined
  const families: readonly Family[] = [left.family, right.family]
  if (families.every((family) => family === 'number' || family === 'null')) {
    return families.includes('null') ? nullType : numberResult(operator, left, right)
  }
  if (families.includes('null')) return nullType
  return timeResults[`${left.family} ${operator} ${right.family}`]
}

export function checkArithmetic(operator: Operator, left: TypedExpr, right: TypedExpr): ArithmeticNode {
  const type = resultType(operator, left.type, right.type)
  if (type === undefined) {
    const operands = `${describeType(left.type)} and ${describeType(right.type)}`
    throw new QueryError(`${operator} cannot be applied to ${operands}`, right.position)
  }
  if (['div', 'divby', 'mod'].includes(operator) && right.kind === 'constant' && right.value === 0) {
    throw new QueryError('Division by zero', right.position)
  }
  const plain = operator === 'divby' ? 'div' : operator
  return {
    kind: 'arithmetic',
    operator: plain,
    integer: isInteger(type),
    left,
    right,
    type,
    position: left.position,
  }
}

export function checkNegation(operand: TypedExpr, position: number): UnaryNode {
  const { family, collection } = operand.type
  if (collection || !['number', 'duration', 'null'].includes(family)) {
    throw new QueryError(`- cannot be applied to ${describeType(operand.type)}`, operand.position)
  }
  return { kind: 'negate', operand, type: operand.type, position }
}

/** The families that each argument of a function may have, and the type of the result. `same` means the type of the first argument. */
interface Signature {
  readonly parameters: readonly (readonly Family[])[]
  readonly returns: ValueType | 'same'
}

const text: readonly Family[] = ['string']
const whole: readonly Family[] = ['number']
const int32 = primitive('Edm.Int32')
const string = primitive('Edm.String')
const decimal = primitive('Edm.Decimal')

const onText = (count: number, returns: ValueType): Signature => ({
  parameters: Array(count).fill(text),
  returns,
})
const onDay: Signature = { parameters: [['instant', 'date']], returns: int32 }
const onClock: Signature = { parameters: [['instant', 'timeOfDay']], returns: int32 }
const onInstant = (returns: ValueType): Signature => ({ parameters: [['instant']], returns })
const onNumber: Signature = { parameters: [['number']], returns: 'same' }

/**
 * The functions of OData URL conventions 5.1.1.5 to 5.1.1.9, except the constants of `checkPointInTime`, the functions of collections, and
 * `matchesPattern`, because a `RegExp` can take exponential time.
 */
const signatures: Readonly<Record<string, Signature>> = {
  concat: onText(2, string),
  contains: onText(2, booleanType),
  endswith: onText(2, booleanType),
  startswith: onText(2, booleanType),
  indexof: onText(2, int32),
  length: onText(1, int32),
  tolower: onText(1, string),
  toupper: onText(1, string),
  trim: onText(1, string),
  substring: { parameters: [text, whole, whole], returns: string },
  year: onDay,
  month: onDay,
  day: onDay,
  hour: onClock,
  minute: onClock,
  second: onClock,
  fractionalseconds: { ...onClock, returns: decimal },
  totalseconds: { parameters: [['duration']], returns: decimal },
  date: onInstant(primitive('Edm.Date')),
  time: onInstant(primitive('Edm.TimeOfDay')),
  totaloffsetminutes: onInstant(int32),
  round: onNumber,
  floor: onNumber,
  ceiling: onNumber,
}

function checkPointInTime({ name, position }: CallExpr, now: number): ConstantNode | undefined {
  const constant = (ms: number): ConstantNode => ({
    kind: 'constant',
    value: { ms, offsetMinutes: 0 },
    type: primitive('Edm.DateTimeOffset'),
    position,
  })
  if (name === 'mindatetime') return constant(Date.parse('0001-01-01T00:00:00Z'))
  if (name === 'maxdatetime') return constant(Date.parse('9999-12-31T23:59:59.999Z'))
  return name === 'now' ? constant(now) : undefined
}

function checkArgument(name: string, argument: TypedExpr, families: readonly Family[]): void {
  const { family, collection } = argument.type
  const fits = !collection && (family === 'null' || families.includes(family))
  if (!fits || (families === whole && family === 'number' && !isInteger(argument.type))) {
    throw new QueryError(`${name} cannot be applied to ${describeType(argument.type)}`, argument.position)
  }
}

/** Checks a call of a built-in function. Replaces `now()`, `mindatetime()` and `maxdatetime()` by constants. */
export function checkCall(call: CallExpr, values: readonly TypedExpr[], now: number): TypedExpr {
  const { name, position } = call
  const pointInTime = checkPointInTime(call, now)
  if (pointInTime !== undefined) return pointInTime
  const signature = signatures[name]
  if (signature === undefined) throw new QueryError(`${name} is not supported`, position)
  values.forEach((value, at) => checkArgument(name, value, signature.parameters[at] ?? []))
  const [first, , third] = values
  if (name === 'substring' && third?.kind === 'constant' && Number(third.value) < 0) {
    throw new QueryError('The length must not be negative', third.position)
  }
  const type = signature.returns === 'same' ? (first?.type ?? decimal) : signature.returns
  return { kind: 'call', name, arguments: values, type, position }
}

function literalValue({ type, value }: Literal): Scalar | undefined {
  switch (type) {
    case 'null':
      return null
    case 'Edm.Boolean':
      return value === 'true'
    case 'Edm.Int32':
    case 'Edm.Int64':
    case 'Edm.Decimal':
    case 'Edm.Double':
      return parseNumber(value)
    case 'Edm.Guid':
      return value.toLowerCase()
    case 'Edm.Date':
      return parseDate(value)
    case 'Edm.DateTimeOffset':
      return parseInstant(value)
    case 'Edm.TimeOfDay':
      return parseTimeOfDay(value)
    case 'Edm.Duration':
      return parseDuration(value)
    case 'Edm.String':
    case 'Edm.Binary':
      return value
  }
}

/** Converts a literal to a constant. Throws `QueryError` if a date does not exist. */
export function checkLiteral(literal: Literal): ConstantNode {
  const { position } = literal
  const value = literalValue(literal)
  if (value === undefined) throw new QueryError('The date does not exist', position)
  const type = literal.type === 'null' ? nullType : primitive(literal.type)
  return { kind: 'constant', value, type, position }
}

function enumConstant(members: readonly string[], info: EnumTypeInfo, position: number): ConstantNode {
  const value = parseEnum(members.join(), info.valueByMember)
  if (value === undefined) {
    const known = [...info.valueByMember.keys()].join(', ')
    throw new QueryError(`Expected a member of ${info.name}: ${known}`, position)
  }
  return { kind: 'constant', value, type: { family: 'enum', name: info.name, collection: false }, position }
}

/** Checks an enumeration literal. The namespace of its type may differ from the namespace of the model (service-facts 14). */
export function checkEnumLiteral(
  { typeName, members, position }: EnumLiteral,
  index: ModelIndex,
): ConstantNode {
  const info = index.findType(typeName) ?? index.findType(typeName.slice(typeName.lastIndexOf('.') + 1))
  if (info?.kind !== 'enum') throw new QueryError(`The enumeration type ${typeName} does not exist`, position)
  return enumConstant(members, info, position)
}

/**
 * Converts a literal to the wanted type. A string becomes an enumeration member or a duration (ABNF enumLiteral, durationLiteral). A date
 * becomes midnight UTC if a point in time is wanted, as in ODataLib. Any other node stays unchanged.
 */
function promote(node: TypedExpr, wanted: ValueType, index: ModelIndex): TypedExpr {
  if (
    node.kind === 'constant' &&
    node.type.family === 'date' &&
    wanted.family === 'instant' &&
    typeof node.value === 'number'
  )
    return { ...node, value: { ms: node.value, offsetMinutes: 0 }, type: primitive('Edm.DateTimeOffset') }
  if (node.kind !== 'constant' || node.type.family !== 'string' || typeof node.value !== 'string') return node
  if (wanted.family === 'duration') {
    const value = parseDuration(node.value)
    return value === undefined ? node : { ...node, value, type: primitive('Edm.Duration') }
  }
  const info = wanted.family === 'enum' ? index.findType(wanted.name) : undefined
  return info?.kind === 'enum' ? enumConstant([node.value], info, node.position) : node
}
