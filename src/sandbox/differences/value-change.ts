import type { Identities } from '../identity.ts'
import type { CodeTable } from '../seed/code-table.ts'
import type { Mark } from '../store/mark.ts'

/** The lookups that changes of a mark draw on. */
export interface ChangeTools {
  readonly ids: Identities
  readonly codes: CodeTable
}

/** What a mark must have so that a kind of difference can be drawn for it. */
export type MarkNeed =
  'mark' | 'comment' | 'blanks' | 'minutes' | 'notZero' | 'nulls' | 'bothHalves' | 'noMark'

/** A change of stored values: filters, orders, keys and counts act on the changed ones. */
export interface ValueChange {
  /** Fields of the flat record that it changes. */
  readonly paths: readonly string[]
  readonly needs: MarkNeed
  readonly change: (mark: Mark, tools: ChangeTools) => Mark
}

/** How far a time is moved. */
export const shiftMs = 3_600_000

const of = (path: string, needs: MarkNeed, change: ValueChange['change']): ValueChange => ({
  paths: [path],
  needs,
  change,
})

/** The kinds that change one stored value. */
export const valueChanges = {
  recordedOn: of('RecordedOn', 'mark', (mark) => ({ ...mark, recordedOn: mark.recordedOn + shiftMs })),
  commentCut: of('Comment', 'comment', (mark) => withComment(mark, cut)),
  commentTrimmed: of('Comment', 'blanks', (mark) => withComment(mark, (text) => text.trim())),
  commentOther: of('Comment', 'comment', (mark) => withComment(mark, otherText)),
  code: of('SchoolAttendanceCode', 'mark', (mark, { codes }) => ({ ...mark, code: otherCode(mark, codes) })),
  present: of('Present', 'mark', (mark) => ({ ...mark, present: !mark.present })),
  absent: of('Absent', 'mark', (mark) => ({ ...mark, absent: !mark.absent })),
  minutesNull: of('MinutesLate', 'minutes', (mark) => ({ ...mark, minutesLate: null })),
  minutesZero: of('MinutesLate', 'notZero', (mark) => ({ ...mark, minutesLate: 0 })),
  process: of('ChangeProcessName', 'mark', (mark) => ({
    ...mark,
    changeProcessName: otherText(mark.changeProcessName ?? ''),
  })),
  recordedBy: of('RecordedBy', 'mark', (mark) => ({ ...mark, actor: mark.actor === 1 ? 2 : 1 })),
  id: of('ExternalID', 'mark', (mark, { ids }) => ({
    ...mark,
    externalId: ids.guid(otherIdKind, mark.learner, mark.session),
  })),
} as const satisfies Record<string, ValueChange>

/** Kind of the ids that `id` gives to marks. */
export const otherIdKind = 'otherMark'

const withComment = (mark: Mark, change: (text: string) => string): Mark =>
  mark.comment === null ? mark : { ...mark, comment: change(mark.comment) }

/** Code points, so that no pair of surrogates is torn. */
function cut(text: string): string {
  const points = Array.from(text)
  return points.length < 2 ? text : points.slice(0, Math.ceil(points.length / 2)).join('')
}

/** Another text of the same length; for an empty one a text of one character. */
function otherText(text: string): string {
  const [first, ...rest] = Array.from(text)
  return (first === '#' ? '*' : '#') + rest.join('')
}

/** The next code of the same category, so that the booleans still agree with it; of one that has no other, the next code. */
function otherCode({ code }: Mark, { codes }: CodeTable): number {
  const own = codes[code - 1]
  const others = [...codes.slice(code), ...codes.slice(0, code - 1)].filter(
    ({ visible, category }) => visible && category !== 'system',
  )
  return (others.find(({ category }) => category === own?.category) ?? others[0])?.number ?? code
}
