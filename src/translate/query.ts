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

/** The plan of a V2 read: V3 reads in sequence, and the options that the adapter applies to their rows. */
export interface ReadPlan {
  /** The raw V3 queries without `?`, at least one, in the order of their rows in the reply. */
  readonly queries: readonly string[]
  /** The flat fields in the reply, or `undefined` for all fields. */
  readonly select: Selection | undefined
  readonly skip: number
  /** Maximum number of recorded marks over all pages, or `undefined` for no maximum. */
  readonly top: number | undefined
  readonly count: boolean
  /** The media type of `$format`, which overrides `Accept` (OData protocol 11.2.12), or `undefined` without `$format`. */
  readonly format: string | undefined
  /** True if V3 filters out rows without a mark, so that a next link of V3 means that another mark follows. */
  readonly narrowed: boolean
}

export interface ReadPlanner {
  /** Returns the token of an earlier page if the query is one of the adapter's own next links, else `undefined`. */
  tokenOf(rawQuery: string): string | undefined
  /** Plans a read of the collection. Throws `QueryError` (`ADP_QUERY`, 400) with the option and the character position. */
  plan(rawQuery: string, rules: ReadRules): ReadPlan
  /** Returns the `$select` of a read by key, which does not allow options of collections. Throws `QueryError`. */
  selectOf(rawQuery: string): Selection | undefined
  /** Checks the options of a read of one field. Throws `QueryError`. */
  checkValue(rawQuery: string): void
  /** Returns the `$format` of a checked query, or `undefined` if the query has none. */
  formatOf(rawQuery: string): string | undefined
}

const TYPE = 'AttendanceService.Models.OData.AttendanceRecord'
/** About ten years, the longest time that a school keeps records. Each window takes at least one call. */
const MAX_WINDOWS = 42

/** Indexes the model once. `nowMs` returns the time of `now()`, in ms since the epoch. */
export function createReadPlanner(nowMs: () => number): ReadPlanner {
  const index = createModelIndex(attendanceV2Model)
  const check = (options: QueryOptions): TypedQuery => checkQuery(options, TYPE, index, { now: nowMs() })
  return {
    tokenOf: (rawQuery) => {
      const { skiptoken, ...others } = parseQuery(rawQuery)
      const [other] = Object.keys(others)
      if (skiptoken !== undefined && other !== undefined)
        throw new QueryError('A next link allows no further options. Follow it unchanged', 0, `$${other}`)
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
  return new AdapterError('ADP_QUERY', 'A read of attendance records needs a $filter.', {
    at: { path: '$filter' },
  })
}

/** Returns the windows of a long range in the order of `$orderby`, or `undefined` if one read is enough or a bound is missing. */
function planWindows({ filter, orderby }: TypedQuery): readonly Window[] | undefined {
  const { fromMs, toMs } = filter === undefined ? unbounded : rangeOf(filter)
  const stepMs = MAX_WINDOW_DAYS * DAY_MS
  if (!Number.isFinite(toMs - fromMs) || toMs - fromMs <= stepMs) return undefined
  const count = Math.floor((toMs - fromMs) / stepMs) + 1
  if (count > MAX_WINDOWS) {
    const days = MAX_WINDOW_DAYS * MAX_WINDOWS
    throw new QueryError(`The filter spans more than ${days} days. Read narrower ranges`, 0, '$filter')
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
    )
  return first.direction === 'desc' ? windows.toReversed() : windows
}

/** Returns the V3 query of one window. The adapter applies `$top`, `$skip`, `$count` and `$select`: V3 counts rows that V2 lacks. */
function toV3Query(options: QueryOptions, window: Window | undefined, rules: ReadRules): string {
  const aliases = options.aliases ?? new Map<string, Expr>()
  const own = inOption('$filter', () =>
    toCondition(toV3Expression(options.filter ?? literal('Edm.Boolean', 'true'), aliases)),
  )
  // The added conditions are siblings of the client's, which saves a level if a service limits the depth.
  const conditions = own.kind === 'and' ? [...own.operands] : [own]
  const start = member('AttendableEventStart')
  if (window !== undefined)
    conditions.push(
      compare(start, 'ge', literal('Edm.DateTimeOffset', formatTime(window.fromMs))),
      compare(start, 'lt', literal('Edm.DateTimeOffset', formatTime(window.toMs))),
    )
  const code = member('AttendanceCode', 'ExternalID')
  // V3 filters out most rows that the rules drop. The rules are applied to its reply as well.
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

/** See service.md 8; service-facts 1 and 2. */
const MAX_WINDOW_DAYS = 90
const DAY_MS = 86_400_000

/** A range of session starts in ms since 1970, infinite where it has no bound. `toMs` is outside a window but inside a filter's range. */
interface Window {
  readonly fromMs: number
  readonly toMs: number
}

const unbounded: Window = { fromMs: -Infinity, toMs: Infinity }

/**
 * Returns the range of AttendableEventStart outside which a checked V2 filter matches nothing: `and` narrows it, `or` widens it. A list of
 * times (`in`) is not a range: the service accepts one of any span if the filter names a learner, and none otherwise.
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

/** The path in a V3 record of each filterable field of the flat record (service.md 9.3). */
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

/** The values of parameter aliases, by name without `@`. */
type Aliases = ReadonlyMap<string, Expr>

/**
 * Rewrites an expression over the flat V2 record as one over the nested V3 record and replaces aliases by their values. The expression must
 * be checked against the V2 model, so that all names exist and aliases are not circular. Throws `QueryError` with the position if a
 * construct has no counterpart in V3.
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

/** Turns a condition that is only a field into a comparison, because some services read no other form. */
function toCondition(node: Expr, value: 'true' | 'false' = 'true'): Expr {
  return node.kind === 'path' ? compare(node, 'eq', literal('Edm.Boolean', value)) : node
}

const COMPARISONS: readonly BinaryOperator[] = ['eq', 'ne', 'gt', 'ge', 'lt', 'le', 'in']

function toV3Binary(node: BinaryExpr): BinaryExpr {
  const { operator, left, right } = node
  if (!COMPARISONS.includes(operator)) return node
  return { ...node, left: atMidnight(left, right), right: atMidnight(right, left) }
}

/** Replaces a date that is compared with a time by midnight in UTC, as V2's parser reads it. V3 rejects the date (service-facts 8). */
function atMidnight(node: Expr, other: Expr): Expr {
  if (isDate(other)) return node
  if (node.kind === 'list') return { ...node, items: node.items.map(toMidnight) }
  return node.kind === 'literal' ? toMidnight(node) : node
}

const toMidnight = <Node extends Literal | EnumLiteral>(node: Node): Node | Literal =>
  node.kind === 'literal' && node.type === 'Edm.Date'
    ? { ...node, type: 'Edm.DateTimeOffset', value: `${node.value}T00:00:00Z` }
    : node

/** Returns true for a date. The flat type has no field of type Edm.Date, so only literals and functions are dates. */
function isDate(node: Expr): boolean {
  if (node.kind === 'binary') return isDate(node.left)
  if (node.kind === 'cast') return node.typeName === 'Edm.Date'
  return node.kind === 'call' ? node.name === 'date' : node.kind === 'literal' && node.type === 'Edm.Date'
}

/** Decides tests of the record's type, because the flat type has no base or derived type (OData URL conventions 5.1.1.11.2). */
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
    // Positions inside the value belong to another text, so an error gets the position of the alias.
    try {
      return toV3Expression(value, aliases)
    } catch (error) {
      throw error instanceof QueryError ? error.movedTo(position) : error
    }
  }
  if (root.kind === '$root' || root.kind === 'variable') return refuse('$root or a variable', position)
  // A cast to a value's own type has no effect, and the check has rejected all other casts.
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
  throw new QueryError(`${what} has no counterpart in V3`, position)
}
