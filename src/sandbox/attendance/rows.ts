import { otherIdKind } from '../control/differences.ts'
import { dayOf, isOnRoll } from '../dates.ts'
import type { School } from '../school.ts'
import type { Session } from '../seed/calendar.ts'
import type { Pupil } from '../seed/pupils.ts'
import type { Face, Mark } from '../store/marks.ts'
import { type ReadBounds, unbounded } from './read-bounds.ts'
import type { RecordView } from './record.ts'

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

/** The row of a recorded mark. */
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

/** The row of a stored mark; undefined where its session is outside the calendar. */
export function rowOf(school: School, mark: Mark): Row | undefined {
  const learner = school.roster.byNumber(mark.learner)
  const session = school.calendar.byNumber(mark.session)
  return learner === undefined || session === undefined
    ? undefined
    : recordedRow(school, learner, session, mark)
}

/** Which rows are wanted, as of when, and as which face shows them. */
interface RowQuery {
  readonly bounds: ReadBounds
  /** Absent: the rows as they are stored. */
  readonly face?: Face
  /** Rows up to and with this one are left out. */
  readonly after?: RowPosition | undefined
  /** Marks are read as they were when this was the last effect. */
  readonly asOf?: number | undefined
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

/** The place of a row by its id, whether there is a mark, and whichever face gave the id. */
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
  /** Only these sessions; undefined: all between first and last. */
  readonly only: ReadonlySet<number> | undefined
}

/** The sessions that bounds leave; undefined where there are none. */
function sessionSpan(school: School, bounds: ReadBounds): SessionSpan | undefined {
  const { calendar } = school
  const { sessions } = calendar
  const [start, end] = [sessions[0]?.number ?? 0, sessions.at(-1)?.number ?? -1]
  // A day's sessions begin between its midnights in UTC, so whole days are a safe frame for the filter to narrow.
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

/** The row of a session without a mark: neither present nor absent, without RecordedBy (service.md 2.10). */
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

/** The row with an id in lower case; undefined: the face has none. */
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
 * `AttendanceRecords/SIMS.Changes` (service-facts 4): the marks that were written since an instant. First those of the
 * seeded history, recorded by a teacher then, by learner and time; then those written through this service, in the order
 * of writing, which come after the last learner and have the number of their effect as position.
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
