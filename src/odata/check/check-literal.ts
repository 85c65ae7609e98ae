import type { EnumLiteral, Literal } from '../ast.ts'
import type { EnumTypeInfo, ModelIndex } from '../typed/model-index.ts'
import { QueryError } from '../query-error.ts'
import { parseEnum, parseNumber } from '../typed/read-scalar.ts'
import { parseDate, parseDuration, parseInstant, parseTimeOfDay, type Scalar } from '../typed/scalar.ts'
import type { ConstantNode, TypedExpr } from '../typed/typed-ast.ts'
import { nullType, primitive, type ValueType } from '../typed/value-type.ts'

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

/** The constant of a literal; `QueryError` for a day that does not exist. */
export function checkLiteral(literal: Literal): ConstantNode {
  const { position } = literal
  const value = literalValue(literal)
  if (value === undefined) throw new QueryError('There is no such date', position)
  const type = literal.type === 'null' ? nullType : primitive(literal.type)
  return { kind: 'constant', value, type, position }
}

function enumConstant(members: readonly string[], info: EnumTypeInfo, position: number): ConstantNode {
  const value = parseEnum(members, info.valueByMember)
  if (value === undefined || (members.length > 1 && !info.declaration.flags)) {
    const known = [...info.valueByMember.keys()].join(', ')
    throw new QueryError(
      `Expected ${info.declaration.flags ? 'members' : 'a member'} of ${info.name}: ${known}`,
      position,
    )
  }
  return { kind: 'constant', value, type: { family: 'enum', name: info.name, collection: false }, position }
}

/** The constant of an enumeration literal. Its namespace may be another than the model's (service-facts 14). */
export function checkEnumLiteral(
  { typeName, members, position }: EnumLiteral,
  index: ModelIndex,
): ConstantNode {
  const info = index.findType(typeName) ?? index.findType(typeName.slice(typeName.lastIndexOf('.') + 1))
  if (info?.kind !== 'enum') throw new QueryError(`There is no enumeration type ${typeName}`, position)
  return enumConstant(members, info, position)
}

/**
 * A string literal where an enumeration or duration is wanted is one (ABNF enumLiteral, durationLiteral), and a date literal where a
 * time is wanted is its midnight in UTC, as ODataLib reads it.
 */
export function promote(node: TypedExpr, wanted: ValueType, index: ModelIndex): TypedExpr {
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
  return info?.kind === 'enum' ? enumConstant(node.value.split(','), info, node.position) : node
}
