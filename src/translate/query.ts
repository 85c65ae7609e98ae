import { AdapterError } from '../errors.ts'
import { attendanceV2Model } from '../model/attendance.ts'
import {
  type BinaryExpr,
  type BinaryOperator,
  checkQuery,
  type CompareNode,
  createModelIndex,
  type EnumLiteral,
  type Expr,
  inOption,
  type Literal,
  parseJsonQuery,
  parseQuery,
  type PathExpr,
  printQuery,
  type PropertySegment,
  QueryError,
  type QueryOptions,
  refuseCollectionOptions,
  type Scalar,
  type Selection,
  type TypedExpr,
  type TypedQuery,
  type TypeExpr,
} from '../odata/index.ts'
import { compare, joinWith, literal, member } from './expressions.ts'
import type { ReadRules } from './read-rules.ts'

/** The plan of a V2 read: the V3 reads in their order, and the options that the adapter applies to the rows. */
export interface ReadPlan {
  /** The raw V3 queries without `?`, at least one. The reply has the rows of the queries in this order. */
  readonly queries: readonly string[]
  /** The flat fields that the reply has, or `undefined` for all fields. */
  readonly select: Selection | undefined
  readonly skip: number
  /** Maximum number of recorded marks in all pages together, or `undefined` for no maximum. */
  readonly top: number | undefined
  readonly count: boolean
  /** The media type in `$format`, which overrides `Accept` (OData protocol 11.2.11), or `undefined` if the query has no `$format`. */
  readonly format: string | undefined
  /** True if V3 itself filters out rows without a mark. A next link of V3 then means that another mark follows. */
  readonly narrowed: boolean
}

export interface ReadPlanner {
  /** Returns the token in the query of a next link of the adapter, or `undefined` for any other query. */
  tokenOf(rawQuery: string): string | undefined
  /**
   * Plans a read of the collection. Throws a `QueryError` (`ADP_QUERY`, 400) with the option and the character position if the query is
   * malformed or cannot be translated.
   */
  plan(rawQuery: string, rules: ReadRules): ReadPlan
  /** Returns the `$select` of a read by key. Throws a `QueryError` if the query is invalid or has an option that only collections allow. */
  selectOf(rawQuery: string): Selection | undefined
  /** Checks the options of a read of one field. Throws a `QueryError` if the query is malformed or has an option that is not allowed. */
  checkValue(rawQuery: string): void
  formatOf(rawQuery: string): string | undefined
}

const TYPE = 'AttendanceService.Models.OData.AttendanceRecord'
/**
 * Maximum number of windows of a read: about ten years, as long as schools keep records. Limited, because each window takes at least one
 * call.
 */
const MAX_WINDOWS = 42

/** Creates a planner and indexes the model once. `nowMs` returns the time of `now()` in ms since the epoch. */
export function createReadPlanner(nowMs: () => number): ReadPlanner {
  const index = createModelIndex(attendanceV2Model)
  const check = (options: QueryOptions): TypedQuery => checkQuery(options, TYPE, index, { now: nowMs() })
  return {
    tokenOf: (rawQuery) => {
      const { skiptoken, ...others } = parseQuery(rawQuery)
      const [other] = Object.keys(others)
      if (skiptoken !== undefined && other !== undefined)
        throw new QueryError(
          'A next link allows no further options',
          0,
          `$${other}`,
          'Follow the link unchanged',
        )
      return skiptoken
    },
    plan: (rawQuery, rules) => {
      const options = parseJsonQuery(rawQuery)
      const typed = check(options)
      if (options.filter === undefined) throw missingFilter()
      const windows = planWindows(typed)
      return {
        queries: (windows ?? [undefined]).map((window) => toV3Query(options, window, rules)),
        select: typed.select,
        skip: typed.skip ?? 0,
        top: typed.top,
        count: typed.count,
        format: options.format,
        narrowed: true,
      }
    },
    formatOf: (rawQuery) => parseQuery(rawQuery).format,
    selectOf: (rawQuery) => {
      const options = parseJsonQuery(rawQuery)
      refuseCollectionOptions(options)
      const typed = check(options)
      return typed.select
    },
    checkValue: (rawQuery) => {
      const options = parseJsonQuery(rawQuery)
      refuseCollectionOptions(options, 'select', 'expand')
    },
  }
}

function missingFilter(): AdapterError {
  return new AdapterError(
    'ADP_QUERY',
    'A read of attendance records needs a $filter. Nothing was read. Add a $filter.',
    {
      at: { path: '$filter' },
    },
  )
}

/**
 * Splits a range of more than 90 days into windows, in the order of `$orderby`. Returns `undefined` if the range is shorter or a bound is
 * missing.
 */
function planWindows({ filter, orderby }: TypedQuery): readonly Window[] | undefined {
  const { fromMs, toMs } = filter === undefined ? unbounded : rangeOf(filter)
  const stepMs = MAX_WINDOW_DAYS * DAY_MS
  if (!Number.isFinite(toMs - fromMs) || toMs - fromMs <= stepMs) return undefined
  const count = Math.floor((toMs - fromMs) / stepMs) + 1
  if (count > MAX_WINDOWS) {
    const days = MAX_WINDOW_DAYS * MAX_WINDOWS
    throw new QueryError(`The filter spans more than ${days} days`, 0, '$filter', 'Read narrower ranges')
  }
  const windows = Array.from({ length: count }, (_, index) => ({
    fromMs: fromMs + index * stepMs,
    toMs: fromMs + (index + 1) * stepMs,
  }))
  const [first] = orderby
  if (first === undefined) return windows
  if (!isStart(first.expression))
    throw new QueryError(
      `A range of more than ${MAX_WINDOW_DAYS} days can only be ordered by AttendableEventStart first`,
      first.expression.position,
      '$orderby',
      'Put AttendableEventStart first in $orderby, or read narrower ranges',
    )
  return first.direction === 'desc' ? windows.toReversed() : windows
}

/** Returns the V3 query of one window. Omits options such as `$top`: the adapter applies them itself, because V3 has rows that V2 lacks. */
function toV3Query(options: QueryOptions, window: Window | undefined, rules: ReadRules): string {
  const aliases = options.aliases ?? new Map<string, Expr>()
  const own = inOption('$filter', () =>
    toCondition(toV3Expression(options.filter ?? literal('Edm.Boolean', 'true'), aliases)),
  )
  // Adds the adapter's conditions to the operands of the client's own `and`, because a service may limit the depth of a filter.
  const conditions = own.kind === 'and' ? [...own.operands] : [own]
  const start = member('AttendableEventStart')
  if (window !== undefined)
    conditions.push(
      compare(start, 'ge', literal('Edm.DateTimeOffset', formatTime(window.fromMs))),
      compare(start, 'lt', literal('Edm.DateTimeOffset', formatTime(window.toMs))),
    )
  const code = member('AttendanceCode', 'ExternalID')
  // Lets V3 filter out most rows that the rules exclude, to save pages. The adapter applies the same rules to V3's reply again.
  if (rules.needsRecordedBy)
    conditions.push(compare(member('RecordedBy', 'ExternalID'), 'ne', literal('null', 'null')))
  for (const id of rules.unmarkedCodes) conditions.push(compare(code, 'ne', literal('Edm.Guid', id)))
  const orderby = inOption('$orderby', () =>
    options.orderby?.map((item) => ({ ...item, expression: toV3Expression(item.expression, aliases) })),
  )
  return printQuery({ filter: joinWith('and', conditions), ...(orderby === undefined ? {} : { orderby }) })
}

function formatTime(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}

/** The longest range that V3 accepts in one read (service.md 8; service-facts 1 and 2). A longer range is split into windows. */
const MAX_WINDOW_DAYS = 90
const DAY_MS = 86_400_000

/** A range of session starts in ms since 1970, infinite if a bound is missing. A window excludes `toMs`; a filter's range includes it. */
interface Window {
  readonly fromMs: number
  readonly toMs: number
}

const unbounded: Window = { fromMs: -Infinity, toMs: Infinity }

/**
 * Returns the range of AttendableEventStart outside which a checked V2 filter matches nothing. `and` narrows the range, and `or` widens it.
 * A list of times (`in`) sets no bound: the service accepts a list of any span if the filter names a learner, and no list otherwise.
 */
function rangeOf(node: TypedExpr): Window {
  switch (node.kind) {
    case 'and':
      return node.operands.map(rangeOf).reduce((one, other) => ({
        fromMs: Math.max(one.fromMs, other.fromMs),
        toMs: Math.min(one.toMs, other.toMs),
      }))
    case 'or':
      return node.operands.map(rangeOf).reduce((one, other) => ({
        fromMs: Math.min(one.fromMs, other.fromMs),
        toMs: Math.max(one.toMs, other.toMs),
      }))
    case 'compare':
      return rangeOfComparison(node)
    default:
      return unbounded
  }
}

function rangeOfComparison({ operator, left, right }: CompareNode): Window {
  if (isStart(left) && right.kind === 'constant') return bounded(operator, timeOf(right.value))
  if (isStart(right) && left.kind === 'constant') return bounded(flipped[operator], timeOf(left.value))
  return unbounded
}

const flipped = { eq: 'eq', ne: 'ne', gt: 'lt', ge: 'le', lt: 'gt', le: 'ge' } as const

const timeOf = (value: Scalar): number | undefined =>
  typeof value === 'object' && value !== null ? value.ms : undefined

function bounded(operator: CompareNode['operator'], ms: number | undefined): Window {
  if (ms === undefined || operator === 'ne') return unbounded
  if (operator === 'eq') return { fromMs: ms, toMs: ms }
  return operator === 'gt' || operator === 'ge' ? { ...unbounded, fromMs: ms } : { ...unbounded, toMs: ms }
}

function isStart(node: TypedExpr): boolean {
  return node.kind === 'member' && node.path.join('/') === 'AttendableEventStart'
}

/** Maps each filterable field of the flat record to its path in a V3 record (service.md 9.3). */
const v3Paths: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ...['ExternalID', 'Present', 'Absent', 'RecordedOn', 'ChangeProcessName', 'AttendableEventStart'].map(
    (name) => [name, [name]] as const,
  ),
  ['RecordedBy', ['RecordedBy', 'ExternalID']],
  ['Learner', ['Attendee', 'ExternalID']],
  ['AttendableEvent', ['Event', 'ExternalID']],
  ['SchoolAttendanceCode', ['AttendanceCode', 'ExternalID']],
  ['MinutesLate', ['Qualifier', 'MinutesLate']],
  ['Comment', ['Qualifier', 'Comment']],
])

/** The values of parameter aliases, by their names without `@`. */
type Aliases = ReadonlyMap<string, Expr>

/**
 * Rewrites an expression about the flat V2 record as an expression about the nested V3 record, and replaces aliases by their values. The
 * expression must have been checked against the V2 model, so that all names exist and no alias refers to itself. Throws `QueryError` with
 * the position if V3 has no counterpart.
 */
function toV3Expression(node: Expr, aliases: Aliases): Expr {
  const inner = (expression: Expr): Expr => toV3Expression(expression, aliases)
  switch (node.kind) {
    case 'literal':
    case 'enum':
    case 'list':
      return node
    case 'array':
      return { ...node, items: node.items.map(inner) }
    case 'and':
    case 'or':
      return { ...node, operands: node.operands.map((operand) => toCondition(inner(operand))) }
    case 'not': {
      const operand = inner(node.operand)
      return operand.kind === 'path' ? toCondition(operand, 'false') : { ...node, operand }
    }
    case 'negate':
      return { ...node, operand: inner(node.operand) }
    case 'binary':
      return toV3Binary({ ...node, left: inner(node.left), right: inner(node.right) })
    case 'call':
      return { ...node, arguments: node.arguments.map(inner) }
    case 'cast':
      if (node.operand === undefined || !node.typeName.startsWith('Edm.'))
        return refuse('A cast to this type', node.position)
      return { ...node, operand: inner(node.operand) }
    case 'isof':
      return toV3TypeTest(node, inner)
    case 'object':
      return refuse('A JSON object', node.position)
    case 'path':
      return toV3Path(node, aliases)
  }
}

/** Turns a condition that consists of a field alone into a comparison, because some services accept no other form. */
function toCondition(node: Expr, value: 'true' | 'false' = 'true'): Expr {
  return node.kind === 'path' ? compare(node, 'eq', literal('Edm.Boolean', value)) : node
}

const COMPARISONS: readonly BinaryOperator[] = ['eq', 'ne', 'gt', 'ge', 'lt', 'le', 'in']

function toV3Binary(node: BinaryExpr): BinaryExpr {
  const { operator, left, right } = node
  if (!COMPARISONS.includes(operator)) return node
  return { ...node, left: atMidnight(left, right), right: atMidnight(right, left) }
}

/** Replaces a date that is compared with a time by midnight in UTC, as V2's parser does. V3 rejects such a date (service-facts 8). */
function atMidnight(node: Expr, other: Expr): Expr {
  if (isDate(other)) return node
  if (node.kind === 'list') return { ...node, items: node.items.map(toMidnight) }
  return node.kind === 'literal' ? toMidnight(node) : node
}

const toMidnight = <Node extends Literal | EnumLiteral>(node: Node): Node | Literal =>
  node.kind === 'literal' && node.type === 'Edm.Date'
    ? { ...node, type: 'Edm.DateTimeOffset', value: `${node.value}T00:00:00Z` }
    : node

/** Returns true if an expression is a date. Paths are never dates, because the flat record has no field of type Edm.Date. */
function isDate(node: Expr): boolean {
  if (node.kind === 'binary') return isDate(node.left)
  if (node.kind === 'cast') return node.typeName === 'Edm.Date'
  return node.kind === 'call' ? node.name === 'date' : node.kind === 'literal' && node.type === 'Edm.Date'
}

/** Replaces a test of the record's own type by its result, which is fixed because the type has no base type and no derived types. */
function toV3TypeTest(node: TypeExpr, inner: (expression: Expr) => Expr): Expr {
  const { operand, typeName, position } = node
  const field = operand === undefined || isRecordItself(operand) ? undefined : operand
  if (field !== undefined && typeName.startsWith('Edm.')) return { ...node, operand: inner(field) }
  const value = field === undefined && typeName.endsWith('.AttendanceRecord')
  return { kind: 'literal', type: 'Edm.Boolean', value: String(value), position }
}

const isRecordItself = (node: Expr): boolean =>
  node.kind === 'path' &&
  ['$it', '$this'].includes(node.root.kind) &&
  node.segments.every(({ kind }) => kind === 'typeCast')

function toV3Path(node: PathExpr, aliases: Aliases): Expr {
  const { root, segments, position } = node
  if (root.kind === 'alias') {
    const value = aliases.get(root.name)
    // An alias without a value is null (OData URL conventions 5.3).
    if (value === undefined) return { kind: 'literal', type: 'null', value: 'null', position }
    // Moves errors to the position of the alias, because positions inside its value refer to another text.
    try {
      return toV3Expression(value, aliases)
    } catch (error) {
      throw error instanceof QueryError ? error.movedTo(position) : error
    }
  }
  if (root.kind === '$root' || root.kind === 'variable') return refuse('$root or a variable', position)
  // Drops casts of a value to its own type, which have no effect. The check has rejected all other casts.
  const [first, ...rest] = segments.filter(({ kind }) => kind !== 'typeCast')
  if (first?.kind !== 'property') return refuse(describe(first?.kind ?? root.kind), position)
  const names = v3Paths.get(first.name)
  if (names === undefined || rest.length > 0)
    return refuse([first.name, ...rest.map(({ kind }) => describe(kind))].join('/'), first.position)
  const path = names.map((name): PropertySegment => ({ kind: 'property', name, position: first.position }))
  return { ...node, root: { kind: 'member' }, segments: path }
}

function describe(kind: string): string {
  return kind === 'any' || kind === 'all' ? `${kind}()` : kind
}

function refuse(what: string, position: number): never {
  throw new QueryError(`${what} has no counterpart in V3`, position, undefined, 'Omit this part of the query')
}
