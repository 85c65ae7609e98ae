import { dayMs } from '../dates.ts'
import { isOnRoll } from '../roll.ts'
import type { School } from '../school.ts'
import type { Session } from '../seed/calendar.ts'
import type { Mark } from '../store/mark.ts'
import type { RosterEntry } from '../store/roster.ts'
import type { ReadBounds } from './read-bounds.ts'
import type { RecordView } from './record-entity.ts'

/** The position of a row in the natural order: by learner, then by time. */
export interface RowPosition {
  readonly learner: number
  readonly session: number
  readonly copy: number
}

/** One row of the augmented set. */
export interface Row {
  readonly view: RecordView
  readonly position: RowPosition
  /** Number of the effect that wrote the mark, 0 for the seeded history; undefined: there is no recorded mark. */
  readonly seq: number | undefined
}

/** Which rows are wanted, and as of when. */
export interface RowQuery {
  readonly bounds: ReadBounds
  /** Rows up to and with this one are left out. */
  readonly after?: RowPosition
  /** Marks are read as they were when this was the last effect. */
  readonly asOf?: number
  /** Rows that the system makes are left out (the legacy face). */
  readonly recordedOnly?: boolean
}

/**
 * The augmented record set (service.md 1.2): a row for every session of the calendar, weekends and holidays included, for
 * every learner who is on roll that day, with the mark or the code for a missing mark; and every other mark.
 */
export function* augmentedRows(school: School, query: RowQuery): Generator<Row> {
  const { bounds, after } = query
  const span = sessionSpan(school, bounds)
  if (span === undefined) return
  for (const learner of learnersOf(school, bounds)) {
    if (after !== undefined && learner.number < after.learner) continue
    for (const row of learnerRows(school, learner, span, query)) {
      if (after === undefined || isAfter(row.position, after)) yield row
    }
  }
}

const isAfter = (row: RowPosition, after: RowPosition): boolean =>
  row.learner !== after.learner
    ? row.learner > after.learner
    : row.session !== after.session
      ? row.session > after.session
      : row.copy > after.copy

function learnersOf({ roster, ids, marks }: School, { learners, records }: ReadBounds): RosterEntry[] {
  if (learners !== undefined)
    return [...learners]
      .map((id) => roster.byId(id))
      .filter((entry) => entry !== undefined)
      .sort((one, other) => one.number - other.number)
  if (records === undefined) return [...roster.entries]
  const numbers = [...records].map((id) => marks.byId(id)?.learner ?? ids.read('mark', id)?.first)
  return roster.entries.filter(({ number }) => numbers.includes(number))
}

interface SessionSpan {
  readonly first: number
  readonly last: number
  /** Only these sessions; undefined: all between first and last. */
  readonly only: ReadonlySet<number> | undefined
}

/** The sessions that bounds leave; undefined where there are none. */
function sessionSpan({ calendar, marks, ids }: School, bounds: ReadBounds): SessionSpan | undefined {
  const { sessions } = calendar
  const [start, end] = [sessions[0]?.number ?? 0, sessions.at(-1)?.number ?? -1]
  // A day's sessions begin between its midnights in UTC, so whole days are a safe frame for the filter to narrow.
  const first = bounds.from === undefined ? start : Math.max(start, Math.floor(bounds.from / dayMs) * 2)
  const last = bounds.to === undefined ? end : Math.min(end, Math.floor(bounds.to / dayMs) * 2 + 1)
  let only: Set<number> | undefined
  if (bounds.events !== undefined)
    only = new Set([...bounds.events].map((id) => calendar.byId(id)?.number).filter((n) => n !== undefined))
  if (bounds.records !== undefined) {
    const named = [...bounds.records].map((id) => marks.byId(id)?.session ?? ids.read('mark', id)?.second)
    const known = new Set(named.filter((number) => number !== undefined))
    only = only === undefined ? known : new Set([...only].filter((number) => known.has(number)))
  }
  if (only === undefined) return first <= last ? { first, last, only } : undefined
  const inside = [...only].filter((number) => number >= first && number <= last)
  if (inside.length === 0) return undefined
  return { first: Math.min(...inside), last: Math.max(...inside), only: new Set(inside) }
}

function* learnerRows(
  school: School,
  learner: RosterEntry,
  span: SessionSpan,
  query: RowQuery,
): Generator<Row> {
  const first =
    query.after?.learner === learner.number ? Math.max(span.first, query.after.session) : span.first
  const marks = marksAsOf(school, school.marks.range(learner.number, first, span.last), query.asOf)
  let at = 0
  for (let number = first; number <= span.last; number += 1) {
    const begin = at
    while (marks[at]?.session === number) at += 1
    const session = school.calendar.byNumber(number)
    if (session === undefined || span.only?.has(number) === false) continue
    for (const mark of marks.slice(begin, at)) yield recordedRow(school, learner, session, mark)
    if (begin === at && query.recordedOnly !== true && isOnRoll(learner, session.day))
      yield unmarkedRow(school, learner, session)
  }
}

/** The marks as they were when `asOf` was the last effect. */
function marksAsOf({ marks }: School, current: readonly Mark[], asOf: number | undefined): readonly Mark[] {
  if (asOf === undefined) return current
  return current
    .map((mark) => (mark.seq > asOf ? marks.before(mark, asOf) : mark))
    .filter((mark) => mark !== undefined)
}

/** The row of a recorded mark. */
export function recordedRow(school: School, learner: RosterEntry, session: Session, mark: Mark): Row {
  const { externalId, present, absent, recordedOn, changeProcessName, minutesLate, comment, copy } = mark
  return {
    view: {
      ...{ externalId, present, absent, recordedOn, changeProcessName, minutesLate, comment },
      start: session.startText,
      recordedBy: school.actors.externalId(mark.actor),
      learner: learner.externalId,
      event: session.externalId,
      code: school.codes.byNumber(mark.code)?.externalId ?? '',
    },
    position: { learner: learner.number, session: session.number, copy },
    seq: mark.seq,
  }
}

/** The row of a session without a mark: neither present nor absent, without RecordedBy (service.md 2.10). */
function unmarkedRow(school: School, learner: RosterEntry, session: Session): Row {
  return {
    view: {
      externalId: school.ids.guid('mark', learner.number, session.number),
      present: false,
      absent: false,
      recordedOn: null,
      changeProcessName: null,
      minutesLate: null,
      comment: null,
      start: session.startText,
      recordedBy: null,
      learner: learner.externalId,
      event: session.externalId,
      code: school.codes.forUnmarked(session.kind).externalId,
    },
    position: { learner: learner.number, session: session.number, copy: 0 },
    seq: undefined,
  }
}

/** The row with an id in lower case, recorded or not, as it was when `asOf` was the last effect. */
export function rowById(school: School, externalId: string, asOf?: number): Row | undefined {
  const query: RowQuery = {
    bounds: { records: new Set([externalId]) },
    ...(asOf === undefined ? {} : { asOf }),
  }
  for (const row of augmentedRows(school, query)) if (row.view.externalId === externalId) return row
  return undefined
}
