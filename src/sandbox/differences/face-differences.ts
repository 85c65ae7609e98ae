import { formatInstant } from '../dates.ts'
import type { Entity } from '../query/compiled-query.ts'
import type { Calendar } from '../seed/calendar.ts'
import type { Mark } from '../store/mark.ts'
import type { MarkStore } from '../store/marks.ts'
import type { DifferencePlan } from './difference-plan.ts'
import type { PlacedDifference } from './draw-places.ts'
import { changeForm, formChanges } from './form-change.ts'
import type { LateWrites } from './late-writes.ts'
import type { ReplyChange } from './reply-change.ts'
import { shiftMs, valueChanges } from './value-change.ts'
import type { ChangeTools } from './value-change.ts'

/** How one face shows the marks of the store. */
export interface FaceDifferences {
  /** Changes of the replies to batches. */
  readonly reply: readonly ReplyChange[]
  /** The marks of a learner in a closed range of sessions, as the face shows them; `stored` and the result are in order of time. */
  marks(learner: number, first: number, last: number, stored: readonly Mark[]): readonly Mark[]
  /** The session whose row is shown in the place of this one's. */
  partner(learner: number, session: number): number | undefined
  /** The start that is shown for a session; undefined: its own. */
  start(learner: number, session: number): string | undefined
  /** Writes a record otherwise; undefined: as it is. */
  form(learner: number, session: number): ((entity: Entity) => Entity) | undefined
  /** Whether the history of a session has a state that the other face does not show. */
  hasMoreHistory(learner: number, session: number): boolean
  /** Whether the face does not show a write yet, by the number of its effect. */
  hides(seq: number): boolean
}

/** The store behind the faces. */
export interface MarkSource extends ChangeTools {
  readonly marks: MarkStore
  readonly calendar: Calendar
}

/** Creates the view of a face from its differences. */
export function createFaceDifferences(
  source: MarkSource,
  { face, reply }: DifferencePlan,
  placed: readonly PlacedDifference[],
  late: LateWrites,
): FaceDifferences {
  const byLearner = Map.groupBy(placed, ({ learner }) => learner)
  const none: readonly PlacedDifference[] = []
  const at = (learner: number, session: number): readonly PlacedDifference[] =>
    byLearner.get(learner)?.filter((one) => one.session === session) ?? none
  const has = (kind: PlacedDifference['kind'], learner: number, session: number): boolean =>
    at(learner, session).some((one) => one.kind === kind)
  return {
    reply,
    marks: (learner, first, last, stored) => {
      const seen = stored.map((mark) => late.visible(mark, source.marks)).filter((mark) => mark !== undefined)
      const differences = byLearner.get(learner)?.filter(({ session }) => session >= first && session <= last)
      return (differences ?? none).reduce<readonly Mark[]>((marks, one) => change(source, one, marks), seen)
    },
    partner: (learner, session) => {
      const morning = session - (session % 2)
      if (!has('order', learner, morning)) return undefined
      return session === morning ? session + 1 : morning
    },
    start: (learner, session) => {
      const start = source.calendar.byNumber(session)?.start
      return start === undefined || !has('start', learner, session)
        ? undefined
        : formatInstant(start + shiftMs)
    },
    form: (learner, session) => {
      const forms = at(learner, session).flatMap(({ kind }) =>
        kind in formChanges ? [formChanges[kind as keyof typeof formChanges]] : [],
      )
      if (forms.length === 0) return undefined
      return (entity) => forms.reduce((shown, form) => changeForm(form, face, shown), entity)
    },
    hasMoreHistory: (learner, session) => has('history', learner, session),
    hides: (seq) => late.hides(seq),
  }
}

function change(
  source: MarkSource,
  { kind, ...place }: PlacedDifference,
  marks: readonly Mark[],
): readonly Mark[] {
  const { session } = place
  const isHere = (mark: Mark): boolean => mark.session === session
  if (kind in valueChanges) {
    const { change: changeValue } = valueChanges[kind as keyof typeof valueChanges]
    return marks.map((mark) => (isHere(mark) ? changeValue(mark, source) : mark))
  }
  switch (kind) {
    case 'missing':
      return marks.filter((mark) => !isHere(mark))
    case 'doubled': {
      const last = marks.findLast(isHere)
      if (last === undefined) return marks
      return marks.toSpliced(marks.indexOf(last) + 1, 0, { ...last, copy: last.copy + 1 })
    }
    case 'extra': {
      if (marks.some(isHere)) return marks
      const next = marks.findIndex((mark) => mark.session > session)
      return marks.toSpliced(next < 0 ? marks.length : next, 0, extraMark(source, place))
    }
    default:
      return marks
  }
}

/** A mark as a teacher records it, where the store has none. It has the id of the session's row without a mark. */
function extraMark(
  { ids, calendar, codes }: MarkSource,
  { learner, session }: Pick<PlacedDifference, 'learner' | 'session'>,
): Mark {
  const start = calendar.byNumber(session)?.start ?? 0
  return {
    ...{ learner, session, copy: 0, present: true, absent: false, actor: 1, seq: 0 },
    code: codes.named(session % 2 === 0 ? '/' : '\\').number,
    recordedOn: start + 20 * 60_000,
    ...{ minutesLate: null, comment: null, changeProcessName: null },
    externalId: ids.guid('mark', learner, session),
  }
}
