import { type Expr, printQuery } from '../odata/index.ts'
import type { FlatReply } from '../v2/record/flat-reply.ts'
import { createRowReader } from './read-rules.ts'

/** Marks in one query: the text stays below 8 KiB, the limit of common gateways. */
const MARKS_PER_QUERY = 40

/** One V3 read of `StatutoryAttendanceRecordHistorys`: raw, without `?`. */
type HistoryQuery = string

/**
 * The queries for the changes of exactly these marks, each for at most 40 of them. A mark is identified by its learner and event:
 * the name of its id in V3's history is not documented (service-facts 4).
 */
export function toHistoryQueries(marks: readonly FlatReply[]): HistoryQuery[] {
  const distinct = [...new Map(marks.map((mark) => [historyKey(mark), mark])).values()]
  const queries: HistoryQuery[] = []
  for (let at = 0; at < distinct.length; at += MARKS_PER_QUERY) {
    const conditions = distinct.slice(at, at + MARKS_PER_QUERY).map(isOfMark)
    const [first, ...others] = conditions
    if (first === undefined) continue
    queries.push(
      printQuery({
        filter: others.length === 0 ? first : { kind: 'or', operands: conditions, position: 0 },
      }),
    )
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
  return {
    kind: 'and',
    operands: [equals('Attendee', Learner), equals('Event', AttendableEvent)],
    position: 0,
  }
}

function equals(reference: string, id: string): Expr {
  const segments = [reference, 'ExternalID'].map((name) => ({ kind: 'property', name, position: 0 }) as const)
  return {
    kind: 'binary',
    operator: 'eq',
    left: { kind: 'path', root: { kind: 'member' }, segments, position: 0 },
    right: { kind: 'literal', type: 'Edm.Guid', value: id, position: 0 },
    position: 0,
  }
}
