import fc, { type Arbitrary } from 'fast-check'
import type {
  BinaryOperator,
  EnumLiteral,
  ExpandItem,
  Expr,
  FunctionParameter,
  ItemSegment,
  KeyValue,
  Literal,
  LiteralType,
  PathExpr,
  PathSegment,
  QueryOptions,
  SelectItem,
} from '../../src/odata/ast.ts'

/** Generated trees have no source text, so every position is 0. */
const position = 0

const propertyName = fc.constantFrom(
  'A',
  'Bc',
  'Name',
  'eq',
  'and',
  'Élan',
  '_x1',
  'anyone',
  'nothing',
  'INFO',
)
const typeName = fc.constantFrom('NS.Type', 'A.B.C', 'Edm.String')
const functionName = fc.constantFrom('Changes', 'NS.Changes')

const pad = (width: number) => (value: number) => String(value).padStart(width, '0')
const digits = (max: number, width = 2): Arbitrary<string> => fc.nat(max).map(pad(width))
const isoDate = fc
  .tuple(digits(9999, 4), fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 31 }))
  .map(([year, month, day]) => `${year}-${pad(2)(month)}-${pad(2)(day)}`)
const isoTime = fc
  .tuple(digits(23), digits(59), digits(59), digits(999))
  .map(([h, m, s, f]) => `${h}:${m}:${s}.${f}`)

const valueOf: Readonly<Record<LiteralType, Arbitrary<string>>> = {
  null: fc.constant('null'),
  'Edm.Boolean': fc.constantFrom('true', 'false'),
  'Edm.Int32': fc.integer().map(String),
  'Edm.Int64': fc.bigInt({ min: 2147483648n, max: 9223372036854775807n }).map(String),
  'Edm.Decimal': fc.tuple(fc.integer(), fc.nat(9999)).map(([whole, fraction]) => `${whole}.${fraction}`),
  'Edm.Double': fc.constantFrom('INF', '-INF', 'NaN', '1e3', '-2.5E-7'),
  'Edm.String': fc.string({ unit: 'binary', maxLength: 8 }),
  'Edm.Guid': fc.uuid(),
  'Edm.Date': isoDate,
  'Edm.DateTimeOffset': fc
    .tuple(isoDate, isoTime, fc.constantFrom('Z', '+01:00', '-11:30'))
    .map((parts) => `${parts[0]}T${parts[1]}${parts[2]}`),
  'Edm.TimeOfDay': isoTime,
  'Edm.Duration': fc.constantFrom('PT1H', '-P1DT2H3M4.5S', 'P2D'),
  'Edm.Binary': fc.constantFrom('', 'AQID', 'AQ', 'AQI'),
}

export const literal: Arbitrary<Literal> = fc
  .constantFrom(...(Object.keys(valueOf) as LiteralType[]))
  .chain((type) => valueOf[type].map((value) => ({ kind: 'literal', type, value, position })))

const enumLiteral: Arbitrary<EnumLiteral> = fc.record({
  kind: fc.constant('enum'),
  typeName: fc.constantFrom('NS.Kind', 'Kind'),
  members: fc.array(fc.constantFrom('Yellow', 'Élan', '42', '-1'), { minLength: 1, maxLength: 3 }),
  position: fc.constant(position),
})

const alias: Arbitrary<KeyValue> = fc.constant({ kind: 'alias', name: 'p1', position })
const keyValue: Arbitrary<KeyValue> = fc.oneof(
  literal.filter(({ type }) => type !== 'null'),
  enumLiteral,
  alias,
)

const key: Arbitrary<PathSegment> = fc
  .oneof(
    keyValue.map((value) => [{ value, position }]),
    fc.array(
      fc.tuple(propertyName, keyValue).map(([name, value]) => ({ name, value, position })),
      { minLength: 1, maxLength: 2 },
    ),
  )
  .map((parts) => ({ kind: 'key', parts, position }))

const binaryOperators: readonly BinaryOperator[] = [
  ...(['eq', 'ne', 'gt', 'ge', 'lt', 'le', 'has', 'in'] as const),
  ...(['add', 'sub', 'mul', 'div', 'divby', 'mod'] as const),
]

function parameters(value: Arbitrary<Expr>): Arbitrary<readonly FunctionParameter[]> {
  return fc.array(
    fc.tuple(propertyName, value).map(([name, expression]) => ({ name, value: expression, position })),
    { maxLength: 2 },
  )
}

function tail(
  expression: Arbitrary<Expr>,
  variables: readonly string[],
  depth: number,
): Arbitrary<PathSegment> {
  const lambda = fc
    .tuple(fc.constantFrom('any', 'all'), fc.constantFrom('x', 'y', 'z'))
    .chain(([kind, variable]) =>
      expressionIn([...variables, variable], depth - 1).map((predicate): PathSegment => ({
        kind,
        lambda: { variable, predicate },
        position,
      })),
    )
  return fc.oneof(
    lambda,
    fc.constant<PathSegment>({ kind: 'any', position }),
    fc.record({
      kind: fc.constant('$count'),
      position: fc.constant(position),
    }),
    expression.map((filter): PathSegment => ({ kind: '$count', filter, position })),
    expression.map((predicate): PathSegment => ({ kind: '$filter', predicate, position })),
    fc.constant<PathSegment>({ kind: 'annotation', term: 'Term', position }),
    fc.constant<PathSegment>({ kind: 'annotation', term: 'NS.Term', qualifier: 'Q', position }),
    // The name is qualified, because an unqualified name with literal arguments would be parsed as a property with a key.
    parameters(expression).map((given): PathSegment => ({
      kind: 'function',
      name: 'NS.F',
      parameters: given,
      position,
    })),
    functionName.map((name): PathSegment => ({ kind: 'function', name, parameters: [], position })),
  )
}

function path(expression: Arbitrary<Expr>, variables: readonly string[], depth: number): Arbitrary<PathExpr> {
  const property = propertyName.map((name): PathSegment => ({ kind: 'property', name, position }))
  const cast = typeName.map((name): PathSegment => ({ kind: 'typeCast', typeName: name, position }))
  const steps = fc.array(
    fc.oneof(
      property.map((segment) => [segment]),
      fc.tuple(property, cast),
      fc.tuple(property, key),
    ),
    { maxLength: 2 },
  )
  const end =
    depth > 0 ? fc.option(tail(expression, variables, depth), { nil: undefined }) : fc.constant(undefined)
  const rest = fc
    .tuple(steps, end)
    .map(([groups, last]) => [...groups.flat(), ...(last === undefined ? [] : [last])])
  const root: Arbitrary<PathExpr['root']> = fc.oneof(
    fc.constantFrom<PathExpr['root']>({ kind: '$it' }, { kind: '$this' }, { kind: 'alias', name: 'p1' }),
    ...(variables.length > 0
      ? [fc.constantFrom(...variables).map((name) => ({ kind: 'variable' as const, name }))]
      : []),
  )
  const start: PathExpr = { kind: 'path', root: { kind: 'member' }, segments: [], position }
  return fc.oneof(
    {
      weight: 3,
      arbitrary: fc
        .tuple(property, rest)
        .map(([first, more]): PathExpr => ({ ...start, segments: [first, ...more] })),
    },
    fc
      .tuple(cast, property, rest)
      .map(([first, second, more]): PathExpr => ({ ...start, segments: [first, second, ...more] })),
    fc
      .tuple(property, rest)
      .map(([first, more]): PathExpr => ({ ...start, root: { kind: '$root' }, segments: [first, ...more] })),
    fc.tuple(root, rest).map(([from, segments]): PathExpr => ({ ...start, root: from, segments })),
  )
}

/** Generates any expression that the parser can return. `variables` holds the lambda variables in scope. */
function expressionIn(variables: readonly string[], depth: number): Arbitrary<Expr> {
  const leaf: Arbitrary<Expr> = fc.oneof(literal, enumLiteral)
  if (depth <= 0) return leaf
  const inner = fc.oneof(
    { weight: 2, arbitrary: leaf },
    fc.constant(0).chain(() => expressionIn(variables, depth - 1)),
  )
  const list = fc
    .array(fc.oneof(literal, enumLiteral), { maxLength: 3 })
    .map((items): Expr => ({ kind: 'list', items, position }))
  return fc.oneof(
    leaf,
    path(inner, variables, depth),
    fc
      .tuple(fc.constantFrom('and', 'or'), fc.array(inner, { minLength: 2, maxLength: 3 }))
      .map(([kind, operands]): Expr => ({ kind, operands, position })),
    fc
      .tuple(fc.constantFrom(...binaryOperators), inner, inner)
      .map(([operator, left, right]): Expr => ({ kind: 'binary', operator, left, right, position })),
    fc
      .tuple(inner, list)
      .map(([left, right]): Expr => ({ kind: 'binary', operator: 'in', left, right, position })),
    fc
      .tuple(fc.constantFrom('not', 'negate'), inner)
      .map(([kind, operand]): Expr => ({ kind, operand, position })),
    fc
      .tuple(fc.constantFrom('startswith', 'concat', 'matchesPattern'), inner, inner)
      .map(([name, first, second]): Expr => ({ kind: 'call', name, arguments: [first, second], position })),
    fc.constant<Expr>({ kind: 'call', name: 'now', arguments: [], position }),
    fc
      .tuple(fc.constantFrom('cast', 'isof'), inner, fc.oneof(typeName, fc.constant('Collection(Edm.Int32)')))
      .map(([kind, operand, name]): Expr => ({ kind, operand, typeName: name, position })),
    fc
      .tuple(fc.constantFrom('cast', 'isof'), typeName)
      .map(([kind, name]): Expr => ({ kind, typeName: name, position })),
    fc.array(inner, { maxLength: 3 }).map((items): Expr => ({ kind: 'array', items, position })),
    fc
      .array(
        fc.record({
          name: fc.string({ unit: 'binary', maxLength: 4 }),
          value: inner,
          position: fc.constant(position),
        }),
        {
          maxLength: 2,
        },
      )
      .map((members): Expr => ({ kind: 'object', members, position })),
  )
}

export const expression: Arbitrary<Expr> = expressionIn([], 4)
const smallExpression = expressionIn([], 2)

const itemProperty = propertyName.map((name): ItemSegment => ({ kind: 'property', name, position }))
const itemCast = typeName.map((name): ItemSegment => ({ kind: 'typeCast', name, position }))
const itemPath = fc.oneof(
  itemProperty.map((first) => [first]),
  fc.tuple(itemProperty, itemProperty),
  fc.tuple(itemCast, itemProperty),
)

const some = <T>(item: Arbitrary<T>): Arbitrary<T[]> => fc.array(item, { minLength: 1, maxLength: 2 })

/** Generates objects whose members are all optional. An absent member is missing, never `undefined`. */
const given = <T extends object>(members: { [K in keyof T]: Arbitrary<T[K]> }): Arbitrary<Partial<T>> =>
  fc.record(members, { requiredKeys: [] }) as Arbitrary<Partial<T>>

const refOptions = {
  filter: smallExpression,
  orderby: some(
    fc.record({
      expression: smallExpression,
      direction: fc.constantFrom('asc', 'desc'),
      position: fc.constant(position),
    }),
  ),
  top: fc.nat(),
  skip: fc.nat(),
  count: fc.boolean(),
}

const { expand, select } = fc.letrec<{ expand: ExpandItem; select: SelectItem; nested: QueryOptions }>(
  (tie) => ({
    nested: given<QueryOptions>({
      ...refOptions,
      select: some(tie('select')),
      aliases: fc.tuple(propertyName, smallExpression).map((entry) => new Map([entry])),
    }),
    select: fc.oneof(
      { maxDepth: 2 },
      fc.constant<SelectItem>({ path: [{ kind: 'star', name: '*', position }], position }),
      itemPath.map((steps): SelectItem => ({ path: steps, position })),
      fc
        .tuple(itemPath, some(tie('select')))
        .map(([steps, inner]): SelectItem => ({ path: steps, select: inner, position })),
    ),
    expand: fc.oneof(
      { maxDepth: 2 },
      itemPath.map((steps): ExpandItem => ({ path: steps, options: {}, position })),
      fc.constant<ExpandItem>({
        path: [{ kind: 'star', name: '*', position }],
        options: { levels: 'max' },
        position,
      }),
      fc.constant<ExpandItem>({
        path: [{ kind: 'star', name: '*', position }],
        suffix: '$ref',
        options: {},
        position,
      }),
      fc
        .tuple(itemPath, given(refOptions) as Arbitrary<QueryOptions>)
        .map(([steps, options]): ExpandItem => ({ path: steps, suffix: '$ref', options, position })),
      fc.tuple(itemPath, tie('nested'), some(tie('expand'))).map(([steps, options, items]): ExpandItem => ({
        path: steps,
        options: { ...options, expand: items },
        position,
      })),
    ),
  }),
)

/** Generates any combination of the query options of a request. */
export const queryOptions: Arbitrary<QueryOptions> = given<QueryOptions>({
  ...refOptions,
  filter: expression,
  expand: some(expand),
  select: some(select),
  skiptoken: fc.string({ minLength: 1 }),
  format: fc.constantFrom('json', 'application/json;odata.metadata=minimal'),
  aliases: fc.tuple(propertyName, expression).map((entry) => new Map([entry])),
})
