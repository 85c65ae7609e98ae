import { type Expr, printQuery } from '../odata/index.ts'
import type { FlatReply } from '../v2/record/flat-reply.ts'
import { compare, joined, literal, member } from './expressions.ts'
import { createRowReader } from './read-rules.ts'

/** Marks in one query: the text stays below 8 KiB, the limit of common gateways. */
const MARKS_PER_QUERY = 40

/**
 * The raw V3 queries of `StatutoryAttendanceRecordHistorys`, without `?`, for the changes of exactly these marks, each for at most 40 of them. A mark is identified by its learner and event:
 * the name of its id in V3's history is not documented (service-facts 4).
 */
export function toHistoryQueries(marks: readonly FlatReply[]): string[] {
  const distinct = [...new Map(marks.map((mark) => [historyKey(mark), mark])).values()]
  const queries: string[] = []
  for (let at = 0; at < distinct.length; at += MARKS_PER_QUERY) {
    const conditions = distinct.slice(at, at + MARKS_PER_QUERY).map(isOfMark)
    queries.push(printQuery({ filter: joined('or', conditions) }))
  }
  return queries
}

/** The mark that a row of the history belongs to. */
export function historyKey({ Learner, AttendableEvent }: FlatReply): string {
  return `${Learner} ${AttendableEvent}`.toLowerCase()
}

/**
 * One row of the history as a flat record: a state of the mark, with or without RecordedBy. Undefined for any other row.
 */
export function toHistory(row: unknown): FlatReply | undefined {
  const state = readState(row)
  return typeof state === 'string' ? undefined : state
}

const readState = createRowReader({
  needsRecordedBy: false,
  unmarkedCodes: [],
  histories: false,
})

function isOfMark({ Learner, AttendableEvent }: FlatReply): Expr {
  const isId = (reference: string, id: string): Expr =>
    compare(member(reference, 'ExternalID'), 'eq', literal('Edm.Guid', id))
  return joined('and', [isId('Attendee', Learner), isId('Event', AttendableEvent)])
}
