import { type Expr, printQuery } from '../odata/index.ts'
import type { FlatReply } from '../v2/record/flat-reply.ts'
import { createRowReader } from './read-rules.ts'

/** Marks that one query asks for: the text stays below 8 KiB, which usual gateways take. */
const MARKS_PER_QUERY = 40

/** One V3 read of `StatutoryAttendanceRecordHistorys`: raw, without `?`. */
export type HistoryQuery = string

/**
 * The queries that give the changes of these marks and of no others, each for at most 40 of them. A mark is its learner and
 * event: how V3's history names the id of the mark is not shown (service-facts 4).
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

/** Whose change a row is. */
export function historyKey({ Learner, AttendableEvent }: FlatReply): string {
  return `${Learner} ${AttendableEvent}`.toLowerCase()
}

/**
 * One row of the history as a flat record: a state of the mark, which need not have been recorded by somebody. Undefined for
 * what is none.
 */
export function toHistory(row: unknown): FlatReply | undefined {
  const state = readState(row)
  return typeof state === 'string' ? undefined : state
}

const readState = createRowReader({
  wideRange: 'split',
  needsRecordedBy: false,
  unmarkedCodes: [],
  filterUpstream: false,
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
