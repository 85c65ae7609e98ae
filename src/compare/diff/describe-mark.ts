import type { RecordTrait } from '../compared-exchange.ts'
import { codeClassOf } from './classes.ts'
import type { RecordDiff } from './diff-rows.ts'
import { idOf, isMembers, memberOf, type Members, momentOf } from './values.ts'

/** A mark as reports group it and evidence counts it. Ids and code are of the record: hash them before keeping, never log them. */
export interface MarkDescription {
  /** Lower case. */
  readonly id: string | undefined
  readonly learner: string | undefined
  readonly event: string | undefined
  readonly code: string | undefined
  /** Of the session, `YYYY-MM-DD` in UTC. */
  readonly day: string | undefined
  readonly codeClass: 'code:present' | 'code:absent' | 'code:neither' | undefined
  readonly traits: readonly RecordTrait[]
}

/** Describes a record by V2's row, or by V3's where V2 has none. */
export function describeMark({ v2, v3 }: Pick<RecordDiff, 'v2' | 'v3'>): MarkDescription {
  const mark = isMembers(v2) ? v2 : isMembers(v3) ? v3 : {}
  const codeClass = codeClassOf(mark)
  return {
    id: idOf(memberOf(mark, 'ExternalID')),
    learner: idOf(memberOf(mark, 'Learner')),
    event: idOf(memberOf(mark, 'AttendableEvent')),
    code: idOf(memberOf(mark, 'SchoolAttendanceCode')),
    day: dayOf(memberOf(mark, 'AttendableEventStart')),
    codeClass: codeClass === 'code:both' ? undefined : codeClass,
    traits: traitsOf(mark),
  }
}

function dayOf(start: unknown): string | undefined {
  const moment = typeof start === 'string' ? momentOf(start) : undefined
  if (moment === undefined) return undefined
  const text = new Date(moment.seconds * 1_000).toISOString()
  // A year of more than four digits is not a day of a school.
  return text.length === 24 ? text.slice(0, 10) : undefined
}

function traitsOf(mark: Members): readonly RecordTrait[] {
  const [minutes, comment] = [memberOf(mark, 'MinutesLate'), memberOf(mark, 'Comment')]
  const histories = memberOf(mark, 'AttendanceHistorys')
  const traits: RecordTrait[] = []
  if (typeof minutes === 'number' && minutes > 0) traits.push('late')
  if (typeof comment === 'string' && comment !== '') traits.push('comment')
  if (Array.isArray(histories) && histories.length > 0) traits.push('correction')
  return traits
}
