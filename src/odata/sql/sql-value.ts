import type { ModelIndex } from '../typed/model-index.ts'
import { isInstant } from '../typed/scalar.ts'
import type { ArithmeticNode, ConstantNode, MemberNode, TypedExpr } from '../typed/typed-ast.ts'
import { sqlCall } from './sql-call.ts'
import { bind, build, plain, type SqlTerm } from './sql-fragment.ts'
import type { SqlMapping } from './sql-mapping.ts'

/** The input of the translation of one expression. */
export interface SqlContext {
  readonly mapping: SqlMapping
  readonly index: ModelIndex
  /** Translates a condition; `exact` asks for NULL only where the condition is null, never in place of false. */
  readonly condition: (node: TypedExpr, exact: boolean) => SqlTerm | undefined
}

/** Whether a value may be NULL. */
export function isNullable(node: TypedExpr): boolean {
  switch (node.kind) {
    case 'constant':
      return node.value === null
    case 'member':
      return node.nullable
    case 'negate':
      return isNullable(node.operand)
    case 'call':
      return node.name === 'substring' || node.arguments.some(isNullable)
    case 'compare':
    case 'in':
      return false
    default:
      return true
  }
}

/** SQLite stores UTF-8, cuts some functions short at NUL, and has neither NaN nor a literal for infinity. */
const isPortable = (value: string | number): boolean =>
  typeof value === 'number' ? Number.isFinite(value) : value.isWellFormed() && !value.includes('\0')

function sqlConstant({ value, type }: ConstantNode, index: ModelIndex): SqlTerm | undefined {
  if (value === null) return plain('NULL')
  if (typeof value === 'boolean') return plain(value ? '1' : '0')
  if (isInstant(value)) return bind(value.ms)
  if (type.family === 'enum') {
    const info = index.findType(type.name)
    const members = info?.kind === 'enum' && !info.declaration.flags ? info.declaration.members : []
    const member = members.find((candidate) => candidate.value === value)
    return member === undefined ? undefined : bind(member.name)
  }
  return isPortable(value) ? bind(value) : undefined
}

/** A flags value may be stored in several spellings. */
function isStoredOneWay({ type }: MemberNode, index: ModelIndex): boolean {
  const info = type.family === 'enum' ? index.findType(type.name) : undefined
  return info?.kind !== 'enum' || !info.declaration.flags
}

function sqlMember(node: MemberNode, { mapping, index }: SqlContext): SqlTerm | undefined {
  if (node.variable !== 0 || node.type.collection || !isStoredOneWay(node, index)) return undefined
  const column = mapping.column(node.path)
  return column === undefined ? undefined : plain(column)
}

/** The predicate computes with doubles, so SQLite must not divide integers as integers. */
const arithmeticTemplates = {
  add: '({} + {})',
  sub: '({} - {})',
  mul: '({} * {})',
  div: '(CAST({} AS REAL) / {})',
  mod: 'mod({}, {})',
} as const

function sqlArithmetic(node: ArithmeticNode, context: SqlContext): SqlTerm | undefined {
  const left = sqlValue(node.left, context)
  const right = sqlValue(node.right, context)
  const result = build(arithmeticTemplates[node.operator], left, right)
  if (node.type.family === 'date') return build('(floor({} / 86400000.0) * 86400000)', result)
  return node.integer && node.operator === 'div' ? build('trunc({})', result) : result
}

/** Translates a single value; `undefined` where SQLite has no equal of it. */
export function sqlValue(node: TypedExpr, context: SqlContext): SqlTerm | undefined {
  switch (node.kind) {
    case 'constant':
      return sqlConstant(node, context.index)
    case 'member':
      return sqlMember(node, context)
    case 'arithmetic':
      return sqlArithmetic(node, context)
    case 'negate':
      return build('(- {})', sqlValue(node.operand, context))
    case 'call':
      return sqlCall(node, (argument) => sqlValue(argument, context))
    case 'case': {
      const branches = node.branches.map(({ when, then }) =>
        build('WHEN {} THEN {}', context.condition(when, false), sqlValue(then, context)),
      )
      return build(`CASE ${branches.map(() => '{}').join(' ')} END`, ...branches)
    }
    case 'compare':
    case 'in':
    case 'and':
    case 'or':
    case 'not':
      return context.condition(node, true)
    case 'has':
    case 'cast':
    case 'any':
    case 'all':
    case 'count':
      return undefined
  }
}
