import type { CallExpr } from '../ast.ts'
import { describeType, type Scope } from './check-scope.ts'
import { compilePattern } from '../evaluate/pattern.ts'
import { QueryError } from '../query-error.ts'
import { parseInstant, type Instant } from '../typed/scalar.ts'
import type { ConstantNode, TypedExpr } from '../typed/typed-ast.ts'
import { isInteger, primitive, type Family, type ValueType } from '../typed/value-type.ts'

/** Families that each argument may have, and the type of the result; `same` is that of the first argument. */
interface Signature {
  readonly parameters: readonly (readonly Family[])[]
  readonly returns: ValueType | 'same'
}

const text: readonly Family[] = ['string']
const whole: readonly Family[] = ['number']
const boolean = primitive('Edm.Boolean')
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

/** OData URL conventions 5.1.1.5 to 5.1.1.9; the overloads for collections are left out. */
const signatures: Readonly<Record<string, Signature>> = {
  concat: onText(2, string),
  contains: onText(2, boolean),
  endswith: onText(2, boolean),
  startswith: onText(2, boolean),
  matchesPattern: onText(2, boolean),
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

function checkPointInTime({ name, position }: CallExpr, scope: Scope): ConstantNode | undefined {
  const constant = (value: Instant | undefined): ConstantNode => {
    if (value === undefined) throw new QueryError('now() is not available here', position)
    return { kind: 'constant', value, type: primitive('Edm.DateTimeOffset'), position }
  }
  if (name === 'mindatetime') return constant(parseInstant('0001-01-01T00:00:00Z'))
  if (name === 'maxdatetime') return constant(parseInstant('9999-12-31T23:59:59.999Z'))
  if (name !== 'now') return undefined
  return constant(scope.now === undefined ? undefined : { ms: scope.now, offsetMinutes: 0 })
}

function checkArgument(name: string, argument: TypedExpr, families: readonly Family[]): void {
  const { family, collection } = argument.type
  const fits = !collection && (family === 'null' || families.includes(family))
  if (!fits || (families === whole && family === 'number' && !isInteger(argument.type))) {
    throw new QueryError(`${name} does not work on ${describeType(argument.type)}`, argument.position)
  }
}

/** A call of a built-in function with arguments of types that it takes. */
export function checkCall(call: CallExpr, scope: Scope): TypedExpr {
  const { name, position } = call
  const pointInTime = checkPointInTime(call, scope)
  if (pointInTime !== undefined) return pointInTime
  const signature = signatures[name]
  if (signature === undefined) throw new QueryError(`${name} is not supported`, position)
  const values = call.arguments.map((argument, position) => {
    const value = scope.check(argument, scope)
    checkArgument(name, value, signature.parameters[position] ?? [])
    return value
  })
  const [first, second, third] = values
  if (name === 'matchesPattern') checkPattern(second)
  if (name === 'substring' && third?.kind === 'constant' && Number(third.value) < 0) {
    throw new QueryError('The length must not be negative', third.position)
  }
  const type = signature.returns === 'same' ? (first?.type ?? decimal) : signature.returns
  return { kind: 'call', name, arguments: values, type, position }
}

/** A pattern is compiled once, so it must be a literal; one that cannot be read is refused here. */
function checkPattern(pattern: TypedExpr | undefined): void {
  if (pattern?.kind !== 'constant') {
    throw new QueryError('The pattern must be a literal', pattern?.position ?? 0)
  }
  if (typeof pattern.value === 'string') compilePattern(pattern.value, pattern.position)
}
