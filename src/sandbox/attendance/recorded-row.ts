import type { Entity } from '../query/compiled-query.ts'
import type { School } from '../school.ts'
import type { Session } from '../seed/calendar.ts'
import type { Mark } from '../store/mark.ts'
import type { RosterEntry } from '../store/roster.ts'
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
  /** Another written form of the record, which filters and orders do not see; undefined: none. */
  readonly form?: (entity: Entity) => Entity
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

/** The marks as they were when `asOf` was the last effect. */
export function marksAsOf(
  { marks }: School,
  current: readonly Mark[],
  asOf: number | undefined,
): readonly Mark[] {
  if (asOf === undefined) return current
  return current
    .map((mark) => (mark.seq > asOf ? marks.before(mark, asOf) : mark))
    .filter((mark) => mark !== undefined)
}
