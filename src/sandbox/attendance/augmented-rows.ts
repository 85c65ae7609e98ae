import { dayMs } from '../dates.ts'
import { isOnRoll } from '../roll.ts'
import type { School } from '../school.ts'
import type { Place } from '../differences/draw-places.ts'
import { otherIdKind } from '../differences/value-change.ts'
import type { Session } from '../seed/calendar.ts'
import type { Face } from '../store/mark.ts'
import type { RosterEntry } from '../store/roster.ts'
import type { ReadBounds } from './read-bounds.ts'
import { differingRow } from './differing-row.ts'
import { marksAsOf, recordedRow } from './recorded-row.ts'
import type { Row, RowPosition } from './recorded-row.ts'

/** Which rows are wanted, as of when, and as which face shows them. */
export interface RowQuery {
  readonly bounds: ReadBounds
  /** Absent: the rows as they are stored. */
  readonly face?: Face
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
  const numbers = new Set([...records].map((id) => placeOfRecord({ marks, ids }, id)?.learner))
  return roster.entries.filter(({ number }) => numbers.has(number))
}

/** The place of a row by its id, whether there is a mark, and whichever face gave the id. */
function placeOfRecord({ marks, ids }: Pick<School, 'marks' | 'ids'>, id: string): Place | undefined {
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
    const named = [...bounds.records].map((id) => placeOfRecord({ marks, ids }, id)?.session)
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
  const differences = query.face === undefined ? undefined : school.differences.on(query.face)
  const stored = marksAsOf(school, school.marks.range(learner.number, first, span.last), query.asOf)
  const marks = differences?.marks(learner.number, first, span.last, stored) ?? stored
  let at = 0
  for (let number = first; number <= span.last; number += 1) {
    const begin = at
    while (marks[at]?.session === number) at += 1
    const session = school.calendar.byNumber(number)
    if (session === undefined || span.only?.has(number) === false) continue
    for (const mark of marks.slice(begin, at)) {
      const row = recordedRow(school, learner, session, mark)
      yield differences === undefined ? row : differingRow(school, differences, row, query)
    }
    if (begin === at && query.recordedOnly !== true && isOnRoll(learner, session.day))
      yield unmarkedRow(school, learner, session)
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

/** The row with an id in lower case, recorded or not; undefined: the face has none. */
export function rowById(
  school: School,
  externalId: string,
  as: Pick<RowQuery, 'face'> & { readonly asOf?: number | undefined } = {},
): Row | undefined {
  const { face, asOf } = as
  const query: RowQuery = {
    bounds: { records: new Set([externalId]) },
    ...(face === undefined ? {} : { face }),
    ...(asOf === undefined ? {} : { asOf }),
  }
  for (const row of augmentedRows(school, query)) if (row.view.externalId === externalId) return row
  return undefined
}
