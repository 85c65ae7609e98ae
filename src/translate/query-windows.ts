import type { CompareNode, Scalar, TypedExpr } from '../odata/index.ts'

/** Days that one attendance read may span (service.md 8; service-facts 1 and 2). */
export const MAX_WINDOW_DAYS = 90
const DAY_MS = 86_400_000

/** Session starts that a filter can match, milliseconds since 1970, both ends inclusive; absent: not bounded. */
export interface DateRange {
  readonly fromMs?: number
  readonly toMs?: number
}

/** Session starts from `fromMs`, before `toMs`. */
export interface Window {
  readonly fromMs: number
  readonly toMs: number
}

/**
 * The range of AttendableEventStart outside which a checked V2 filter matches nothing: `and` narrows, `or` widens. A list of
 * times (`in`) is not a range: the service accepts one of any span if the filter names a learner, and none otherwise.
 */
export function dateRangeOf(node: TypedExpr): DateRange {
  switch (node.kind) {
    case 'and':
      return node.operands.map(dateRangeOf).reduce(narrow, {})
    case 'or':
      return node.operands.map(dateRangeOf).reduce(widen)
    case 'compare':
      return rangeOf(node)
    default:
      return {}
  }
}

/** Cuts a range of more than 90 days into windows, in order of time; undefined if one read is enough or a bound is missing. */
export function splitRange({ fromMs, toMs }: DateRange): readonly Window[] | undefined {
  if (fromMs === undefined || toMs === undefined) return undefined
  const stepMs = MAX_WINDOW_DAYS * DAY_MS
  if (toMs - fromMs <= stepMs) return undefined
  const count = Math.floor((toMs - fromMs) / stepMs) + 1
  return Array.from({ length: count }, (_, index) => ({
    fromMs: fromMs + index * stepMs,
    toMs: fromMs + (index + 1) * stepMs,
  }))
}

/** The number of windows of a range, without creating them. */
export function windowCount({ fromMs = 0, toMs = 0 }: DateRange): number {
  return Math.floor((toMs - fromMs) / (MAX_WINDOW_DAYS * DAY_MS)) + 1
}

function isStart(node: TypedExpr): boolean {
  return node.kind === 'member' && node.path.length === 1 && node.path[0] === 'AttendableEventStart'
}

const timeOf = (value: Scalar): number | undefined =>
  typeof value === 'object' && value !== null ? value.ms : undefined
const flipped = { eq: 'eq', ne: 'ne', gt: 'lt', ge: 'le', lt: 'gt', le: 'ge' } as const

function rangeOf({ operator, left, right }: CompareNode): DateRange {
  if (isStart(left) && right.kind === 'constant') return bound(operator, timeOf(right.value))
  if (isStart(right) && left.kind === 'constant') return bound(flipped[operator], timeOf(left.value))
  return {}
}

function range(time: number | undefined): DateRange {
  return time === undefined ? {} : { fromMs: time, toMs: time }
}

function bound(operator: CompareNode['operator'], time: number | undefined): DateRange {
  if (time === undefined || operator === 'ne') return {}
  if (operator === 'eq') return range(time)
  return operator === 'gt' || operator === 'ge' ? { fromMs: time } : { toMs: time }
}

function narrow(one: DateRange, other: DateRange): DateRange {
  return toRange(
    Math.max(one.fromMs ?? -Infinity, other.fromMs ?? -Infinity),
    Math.min(one.toMs ?? Infinity, other.toMs ?? Infinity),
  )
}

function widen(one: DateRange, other: DateRange): DateRange {
  return toRange(
    Math.min(one.fromMs ?? -Infinity, other.fromMs ?? -Infinity),
    Math.max(one.toMs ?? Infinity, other.toMs ?? Infinity),
  )
}

function toRange(fromMs: number, toMs: number): DateRange {
  return { ...(fromMs === -Infinity ? {} : { fromMs }), ...(toMs === Infinity ? {} : { toMs }) }
}
