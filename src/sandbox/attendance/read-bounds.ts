import type { CompareNode, MemberNode, Scalar, TypedExpr } from '../../odata/index.ts'
import { dayMs } from '../dates.ts'
import { odataError, type Reply } from '../http/reply.ts'

/** Bounds of the rows that a filter can match. An absent set of ids means that the filter does not restrict these ids. */
export interface ReadBounds {
  /** All ids are in lower case. */
  readonly learners?: ReadonlySet<string>
  readonly events?: ReadonlySet<string>
  readonly records?: ReadonlySet<string>
  /** The earliest and latest start of a session in milliseconds since 1970, both inclusive. Infinite if the filter sets no limit. */
  readonly from: number
  readonly to: number
}

export const unbounded: ReadBounds = { from: -Infinity, to: Infinity }

type IdField = 'learners' | 'events' | 'records'

const idFields = ['learners', 'events', 'records'] as const

/** The id fields by their paths in V3 records and in flat V2 records. */
const idPaths: Readonly<Record<string, IdField>> = {
  'Attendee/ExternalID': 'learners',
  'Event/ExternalID': 'events',
  ExternalID: 'records',
  Learner: 'learners',
  AttendableEvent: 'events',
}

/**
 * Computes bounds that contain every row that a checked filter can match, so that a read can skip all other rows. `and` narrows the bounds
 * and `or` widens the bounds. Other operators (`not`, functions, lambdas) give no bounds.
 */
export function boundsOf(node: TypedExpr): ReadBounds {
  switch (node.kind) {
    case 'and':
      return node.operands.map(boundsOf).reduce(narrow, unbounded)
    case 'or':
      return node.operands.map(boundsOf).reduce(widen)
    case 'compare':
      return boundsOfComparison(node)
    case 'in': {
      const field = node.operand.kind === 'member' ? idPaths[pathOf(node.operand)] : undefined
      const ids = node.items.map((item) => (item.kind === 'constant' ? item.value : undefined))
      return field !== undefined && ids.every(isText) ? { ...unbounded, [field]: new Set(ids) } : unbounded
    }
    default:
      return unbounded
  }
}

const pathOf = ({ variable, path }: MemberNode): string => (variable === 0 ? path.join('/') : '')
const isText = (value: unknown): value is string => typeof value === 'string'
const flipped = { eq: 'eq', ne: 'ne', gt: 'lt', ge: 'le', lt: 'gt', le: 'ge' } as const

function boundsOfComparison({ operator, left, right }: CompareNode): ReadBounds {
  if (left.kind === 'member' && right.kind === 'constant') return bound(pathOf(left), operator, right.value)
  if (left.kind === 'constant' && right.kind === 'member')
    return bound(pathOf(right), flipped[operator], left.value)
  return unbounded
}

function bound(path: string, operator: CompareNode['operator'], value: Scalar): ReadBounds {
  const field = idPaths[path]
  if (field !== undefined)
    return operator === 'eq' && isText(value) ? { ...unbounded, [field]: new Set([value]) } : unbounded
  if (path !== 'AttendableEventStart' || typeof value !== 'object' || value === null) return unbounded
  const { ms } = value
  if (operator === 'ne') return unbounded
  return {
    from: operator === 'lt' || operator === 'le' ? -Infinity : ms,
    to: operator === 'gt' || operator === 'ge' ? Infinity : ms,
  }
}

const common = (one: ReadonlySet<string>, other: ReadonlySet<string>): ReadonlySet<string> =>
  new Set([...one].filter((id) => other.has(id)))

function narrow(one: ReadBounds, other: ReadBounds): ReadBounds {
  const ids = idFields.flatMap((name) => {
    const [mine, theirs] = [one[name], other[name]]
    const both = mine !== undefined && theirs !== undefined ? common(mine, theirs) : (mine ?? theirs)
    return both === undefined ? [] : [[name, both] as const]
  })
  const span = { from: Math.max(one.from, other.from), to: Math.min(one.to, other.to) }
  return { ...Object.fromEntries(ids), ...span }
}

/** Returns bounds that contain both alternatives. Ids stay restricted only if both alternatives restrict them. */
function widen(one: ReadBounds, other: ReadBounds): ReadBounds {
  const ids = idFields.flatMap((name) => {
    const [mine, theirs] = [one[name], other[name]]
    return mine === undefined || theirs === undefined ? [] : [[name, new Set([...mine, ...theirs])] as const]
  })
  const span = { from: Math.min(one.from, other.from), to: Math.max(one.to, other.to) }
  return { ...Object.fromEntries(ids), ...span }
}

/**
 * Refuses a read of attendance that is too wide (service.md 4, 4.1 and 8; service-facts 1 and 2). A date range in the filter may span at
 * most `maxDays` days. A filter without a date range must name one learner, an event or a record. Returns `undefined` if the read is
 * allowed.
 */
export function refuseWideRange(bounds: ReadBounds, maxDays: number): Reply | undefined {
  const { from, to, learners, events, records } = bounds
  if (from !== -Infinity && to !== Infinity) {
    if (to - from <= maxDays * dayMs) return undefined
    return refusal(
      'DateRangeTooLong',
      `The filter spans more than ${maxDays} days. Nothing was read. Read narrower ranges.`,
    )
  }
  if (events !== undefined || records !== undefined || learners?.size === 1) return undefined
  return refusal(
    'DateRangeRequired',
    `The filter has neither a range of AttendableEventStart nor one learner, an event or a record. Nothing was read. Restrict AttendableEventStart to at most ${maxDays} days, or name one learner, an event or a record.`,
  )
}

const refusal = (code: string, message: string): Reply =>
  odataError(400, code, message, [{ code, message, target: '$filter' }])

/** The reply to a read of attendance records without a filter (service.md 4). */
export const filterRequired = refusal(
  'FilterRequired',
  'A read of attendance records needs a $filter. Nothing was read. Add a $filter.',
)
