import { recordedRow } from '../attendance/recorded-row.ts'
import { formatDay } from '../dates.ts'
import { toFlatReply } from '../legacy/flat-entity.ts'
import type { Entity } from '../query/compiled-query.ts'
import type { Json } from '../seed/documents/field-rules.ts'
import type { School } from '../school.ts'
import type { Face, Mark } from '../store/mark.ts'
import type { DifferenceKind } from './difference-plan.ts'
import type { Place, PlacedDifference } from './draw-places.ts'
import type { SetDifferences } from './differences.ts'
import { formChanges, changeForm } from './form-change.ts'

/** A difference that the sandbox shows: what a comparison has to find. */
export interface ListedDifference {
  readonly learner: string
  readonly event: string
  /** Of the session, `YYYY-MM-DD`. */
  readonly day: string
  /** The stored mark's; that of an extra row; null: the mark of a late write is not stored any more. */
  readonly externalId: string | null
  /** The booleans of that mark. */
  readonly present: boolean | null
  readonly absent: boolean | null
  readonly face: Face
  readonly kind: DifferenceKind
  /** Rows of the session with a mark: on the other face, and on this one. */
  readonly rows: { readonly stored: number; readonly shown: number }
  /** Fields of the flat record: on the other face, and on this one; `shown` is absent where the member is. */
  readonly fields: readonly { readonly path: string; readonly stored: Json; readonly shown?: Json }[]
  /** Of a late write. */
  readonly delayMs?: number
}

/** The differences that reads show now. One that changes nothing, such as a comment to be cut on a mark without one, is left out. */
export function listDifferences(school: School): ListedDifference[] {
  const current = school.differences.current()
  if (current === undefined) return []
  const { face } = current.plan
  const about = ({ learner, session }: Place, mark: Mark | undefined) => ({
    learner: school.roster.byNumber(learner)?.externalId ?? '',
    event: school.calendar.byNumber(session)?.externalId ?? '',
    day: formatDay(session >> 1),
    externalId: mark?.externalId ?? null,
    present: mark?.present ?? null,
    absent: mark?.absent ?? null,
    face,
  })
  const placed = current.placed.flatMap((difference): ListedDifference[] => {
    const { learner, session, kind } = difference
    const stored = school.marks.range(learner, session, session)
    const shown = current.shown.marks(learner, session, session, stored)
    const fields = changedFields(school, current, difference, stored[0], shown[0])
    const rows = { stored: stored.length, shown: shown.length }
    const isShown = fields.length > 0 || rows.stored !== rows.shown || isByPlace(school, difference)
    return isShown ? [{ ...about(difference, stored[0] ?? shown[0]), kind, rows, fields }] : []
  })
  const late = current.late.map((write): ListedDifference => {
    const mark = school.marks.range(write.learner, write.session, write.session)[0]
    const rows = { stored: 1, shown: 1 }
    return { ...about(write, mark), kind: 'late', rows, fields: [], delayMs: write.delayMs }
  })
  return [...placed, ...late]
}

/** Differences that show in no field of the row: they need marks to act on. */
function isByPlace({ marks }: School, { kind, learner, session }: PlacedDifference): boolean {
  if (kind === 'history') return marks.range(learner, session, session).length > 0
  return (
    kind === 'order' && new Set(marks.range(learner, session, session + 1).map((one) => one.session)).size > 1
  )
}

function changedFields(
  school: School,
  { shown: shows }: SetDifferences,
  { learner, session, kind }: PlacedDifference,
  stored: Mark | undefined,
  shown: Mark | undefined,
): ListedDifference['fields'] {
  if (stored === undefined || shown === undefined) return []
  const before = flat(school, stored)
  const start = shows.start(learner, session)
  const plain = { ...flat(school, shown), ...(start === undefined ? {} : { AttendableEventStart: start }) }
  const after: Entity =
    kind in formChanges ? changeForm(formChanges[kind as keyof typeof formChanges], 'V2', plain) : plain
  return Object.entries(before).flatMap(([path, value]) => {
    const other = after[path]
    if (other === value) return []
    return [{ path, stored: value, ...(other === undefined ? {} : { shown: other }) }]
  })
}

function flat(school: School, mark: Mark): Record<string, Json> {
  const learner = school.roster.byNumber(mark.learner)
  const session = school.calendar.byNumber(mark.session)
  if (learner === undefined || session === undefined) return {}
  return { ...toFlatReply(recordedRow(school, learner, session, mark).view) }
}
