import { otherIdKind } from '../control/differences.ts'
import { dayOf, isOnRoll } from '../dates.ts'
import type { School } from '../school.ts'
import type { Session } from '../seed/calendar.ts'
import type { Pupil } from '../seed/pupils.ts'
import type { Face, Mark } from '../store/marks.ts'
import { type ReadBounds, unbounded } from './read-bounds.ts'
import type { RecordView } from './record.ts'

/** The position of a row in the natural order, which is by learner and then by time. */
export interface RowPosition {
  readonly learner: number
  readonly session: number
  readonly copy: number
}

export interface Row {
  readonly view: RecordView
  readonly position: RowPosition
  /** The number of the effect (accepted write) that wrote the mark, or 0 for a seeded mark. `undefined` if the session has no mark. */
  readonly seq: number | undefined
}

export function recordedRow(school: School, learner: Pupil, session: Session, mark: Mark): Row {
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

/** Returns the row of a mark, or `undefined` if its learner is not in the roster or its session is outside the calendar. */
export function rowOf(school: School, mark: Mark): Row | undefined {
  const learner = school.roster.byNumber(mark.learner)
  const session = school.calendar.byNumber(mark.session)
  return learner === undefined || session === undefined
    ? undefined
    : recordedRow(school, learner, session, mark)
}

interface RowQuery {
  readonly bounds: ReadBounds
  /** The interface whose configured differences are applied to the rows. If absent, the rows contain the stored values. */
  readonly face?: Face
  readonly after?: RowPosition | undefined
  /** The number of the last effect (accepted write) that the read sees. Later writes are invisible. */
  readonly asOf?: number | undefined
  /** True if sessions without a mark are left out, as in V2. */
  readonly recordedOnly?: boolean
}

/**
 * Yields the rows of all sessions within the bounds of a query, with and without a mark (service.md 1.2). Every learner who is on roll on a
 * day has a row for each session of this day, including weekends and holidays. The row contains the mark, or the code for a missing mark.
 * Marks of learners who are not on roll are included too.
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

function learnersOf(school: School, { learners, records }: ReadBounds): Pupil[] {
  const { roster } = school
  if (learners !== undefined)
    return [...learners]
      .map((id) => roster.byId(id))
      .filter((entry) => entry !== undefined)
      .sort((one, other) => one.number - other.number)
  if (records === undefined) return [...roster.entries]
  const numbers = new Set([...records].map((id) => placeOfRecord(school, id)?.learner))
  return roster.entries.filter(({ number }) => numbers.has(number))
}

/** Finds the learner and session of a row by its id. The session may have no mark, and the id may come from either interface. */
function placeOfRecord(
  { marks, ids }: School,
  id: string,
): Pick<RowPosition, 'learner' | 'session'> | undefined {
  const mark = marks.byId(id)
  if (mark !== undefined) return mark
  const place = ids.read('mark', id) ?? ids.read(otherIdKind, id)
  return place === undefined ? undefined : { learner: place.first, session: place.second }
}

interface SessionSpan {
  readonly first: number
  readonly last: number
  /** The numbers of the included sessions, or `undefined` if all sessions from `first` to `last` are included. */
  readonly only: ReadonlySet<number> | undefined
}

function sessionSpan(school: School, bounds: ReadBounds): SessionSpan | undefined {
  const { calendar } = school
  const { sessions } = calendar
  const [start, end] = [sessions[0]?.number ?? 0, sessions.at(-1)?.number ?? -1]
  // Each session starts on the same day in UTC as in local time, so a limit to whole UTC days loses no row.
  const first = Math.max(start, dayOf(bounds.from) * 2)
  const last = Math.min(end, dayOf(bounds.to) * 2 + 1)
  let only: Set<number> | undefined
  if (bounds.events !== undefined)
    only = new Set([...bounds.events].map((id) => calendar.byId(id)?.number).filter((n) => n !== undefined))
  if (bounds.records !== undefined) {
    const named = [...bounds.records].map((id) => placeOfRecord(school, id)?.session)
    const known = new Set(named.filter((number) => number !== undefined))
    only = only === undefined ? known : new Set([...only].filter((number) => known.has(number)))
  }
  if (only === undefined) return first <= last ? { first, last, only } : undefined
  const inside = [...only].filter((number) => number >= first && number <= last)
  if (inside.length === 0) return undefined
  return { first: Math.min(...inside), last: Math.max(...inside), only: new Set(inside) }
}

function* learnerRows(school: School, learner: Pupil, span: SessionSpan, query: RowQuery): Generator<Row> {
  const first =
    query.after?.learner === learner.number ? Math.max(span.first, query.after.session) : span.first
  const { marks: store, differences } = school
  const { asOf, face } = query
  const current = store.range(learner.number, first, span.last)
  const stored = asOf === undefined ? current : current.flatMap((mark) => store.before(mark, asOf) ?? [])
  const marks = differences.show(face, stored)
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

/** Returns the row of a session without a mark. The row is neither present nor absent and has no RecordedBy (service.md 2.10). */
function unmarkedRow(school: School, learner: Pupil, session: Session): Row {
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

/** Returns the row with this id, or `undefined` if the interface shows no such row. The id must be in lower case. */
export function rowById(
  school: School,
  externalId: string,
  as: Omit<RowQuery, 'bounds' | 'after'>,
): Row | undefined {
  const query = { ...as, bounds: { ...unbounded, records: new Set([externalId]) } }
  for (const row of augmentedRows(school, query)) if (row.view.externalId === externalId) return row
  return undefined
}

/**
 * Yields the marks that were written since an instant, for `AttendanceRecords/SIMS.Changes` (service-facts 4). Seeded marks come first, in
 * order of learner and time. Marks that clients wrote follow in the order of the writes. In the paging position of a mark that a client
 * wrote, `learner` is one more than the number of learners, and `session` is the number of the mark's effect.
 */
export function* changedRows(school: School, since: number, after: RowPosition | undefined): Generator<Row> {
  const beyond = school.roster.entries.length + 1
  if (after === undefined || after.learner < beyond) {
    const seeded = { face: 'V3', bounds: { ...unbounded, from: since }, recordedOnly: true, after } as const
    for (const row of augmentedRows(school, seeded))
      if (row.seq === 0 && (row.view.recordedOn ?? 0) >= since) yield row
  }
  const written = after?.learner === beyond ? after.session : 0
  for (const mark of school.marks.changedSince(since)) {
    const [shown] = mark.seq > written ? school.differences.show('V3', [mark]) : []
    const row = shown === undefined ? undefined : rowOf(school, shown)
    if (row !== undefined) yield { ...row, position: { learner: beyond, session: mark.seq, copy: 0 } }
  }
}
