import type { FlatReply } from '../v2/record/flat-reply.ts'
import { createRowReader } from './read-rules.ts'
import { type BinaryOperator, type Expr, isGuid, type Literal, printQuery } from '../odata/index.ts'

export function member(...names: readonly string[]): Expr {
  const segments = names.map((name) => ({ kind: 'property', name, position: 0 }) as const)
  return { kind: 'path', root: { kind: 'member' }, segments, position: 0 }
}

export function literal(type: Literal['type'], value: string): Expr {
  return { kind: 'literal', type, value, position: 0 }
}

export function compare(left: Expr, operator: BinaryOperator, right: Expr): Expr {
  return { kind: 'binary', operator, left, right, position: 0 }
}

export function joinWith(kind: 'and' | 'or', conditions: readonly Expr[]): Expr {
  const [only, ...more] = conditions
  return only !== undefined && more.length === 0 ? only : { kind, operands: conditions, position: 0 }
}

/** Returns the raw V3 query, without `?`, that finds the attendance codes with these letters. `letters` must not be empty. */
export function toCodeQuery(letters: readonly string[]): string {
  const isCode = (letter: string): Expr => compare(member('Code'), 'eq', literal('Edm.String', letter))
  return printQuery({ filter: joinWith('or', letters.map(isCode)) })
}

/**
 * Returns the id in a row of V3's lookup if the row is a code with one of these letters (case-sensitive; service-facts 7), or `undefined`
 * otherwise.
 */
export function codeIdOf(row: unknown, letters: ReadonlySet<string>): string | undefined {
  if (typeof row !== 'object' || row === null) return undefined
  const { ExternalID: id, Code: code, LookupType: type } = row as Readonly<Record<string, unknown>>
  // The lookup may contain other types than codes. A type name may have a namespace (service-facts 14).
  if (typeof type === 'string' && !/(?:^|\.)AttendanceCode$/i.test(type)) return undefined
  return typeof id === 'string' && isGuid(id) && typeof code === 'string' && letters.has(code)
    ? id
    : undefined
}

/** Maximum number of marks in one query. This maximum keeps the query below 8 KiB, the limit of common gateways. */
const MARKS_PER_QUERY = 40

/**
 * Returns the raw V3 queries, without `?`, that read the changes of exactly these marks from `StatutoryAttendanceRecordHistorys`. The
 * queries name a mark by its learner and event, because the name of its id in V3's history is not documented (service-facts 4).
 */
export function toHistoryQueries(marks: readonly FlatReply[]): string[] {
  const distinct = [...new Map(marks.map((mark) => [historyKey(mark), mark])).values()]
  const queries: string[] = []
  for (let at = 0; at < distinct.length; at += MARKS_PER_QUERY) {
    const conditions = distinct
      .slice(at, at + MARKS_PER_QUERY)
      .map(({ Learner, AttendableEvent }) => isOfMark(Learner, AttendableEvent))
    queries.push(printQuery({ filter: joinWith('or', conditions) }))
  }
  return queries
}

export function historyKey({ Learner, AttendableEvent }: FlatReply): string {
  return `${Learner} ${AttendableEvent}`.toLowerCase()
}

/** Converts a row of V3's history, with or without RecordedBy, into a flat record. Returns `undefined` if the row is no state of a mark. */
export function toHistory(row: unknown): FlatReply | undefined {
  const state = readState(row)
  return typeof state === 'string' ? undefined : state
}

const readState = createRowReader({
  needsRecordedBy: false,
  unmarkedCodes: [],
  histories: false,
})

export function isOfMark(learner: string, event: string): Expr {
  const isId = (reference: string, id: string): Expr =>
    compare(member(reference, 'ExternalID'), 'eq', literal('Edm.Guid', id))
  return joinWith('and', [isId('Attendee', learner), isId('Event', event)])
}
