import type { Comparison } from '../verdict.ts'
import { codeClassOf } from './classes.ts'
import { compareMembers, compareValues, type ValueForm } from './compare-values.ts'
import { Findings, type OwnRules, verdictOnly } from './findings.ts'
import { idOf, isMembers, memberOf, type Members, momentOf } from './values.ts'

/**
 * A property of records, such as a comment. The next step of the rollout is advised only after records with this property were compared.
 */
export type RecordTrait = 'late' | 'comment' | 'correction'

/**
 * Members that reveal the code of a flat mark (service.md 2.10 and 9). Their classes come from `Present` and `Absent`, so that no code is
 * shown.
 */
const codes: ReadonlySet<string> = new Set(['Present', 'Absent', 'SchoolAttendanceCode'])
/** Members that contain text written by people. The text is never parsed as a time or a GUID. */
const texts: ReadonlySet<string> = new Set(['ChangeProcessName', 'Comment'])
const textForm: ValueForm = { text: 'text' }
const HISTORIES = 'AttendanceHistorys'

export interface MarkOptions {
  readonly rules?: OwnRules | undefined
  /** The names of members to ignore, such as `RecordedOn` of a reply. Default: all members are compared. */
  readonly without?: ReadonlySet<string> | undefined
}

/** Compares two marks in the flat form of V2, given as parsed JSON. The verdict is `unknown` if a mark is not an object. */
export function compareMark(v2: unknown, v3: unknown, { rules, without }: MarkOptions = {}): Comparison {
  if (!isMembers(v2) || !isMembers(v3)) return verdictOnly('unknown')
  const findings = new Findings(rules)
  findMarkDifferences(v2, v3, findings, without)
  return findings.result()
}

export function findMarkDifferences(
  v2: Members,
  v3: Members,
  findings: Findings,
  without?: ReadonlySet<string>,
): void {
  const codeForm: ValueForm = { text: 'any', classes: [codeClassOf(v2), codeClassOf(v3)] }
  compareMembers('', v2, v3, findings, (name, one, other) => {
    if (without?.has(name) === true) return true
    if (name === HISTORIES) return acceptOmittedHistory(one, other, findings)
    const form = codes.has(name) ? codeForm : texts.has(name) ? textForm : undefined
    if (form !== undefined) compareValues(name, one, other, findings, form)
    return form !== undefined
  })
}

/**
 * Counts a history that only V2 has as equivalent, since the adapter omits histories by default. Returns false if the caller must compare
 * it.
 */
function acceptOmittedHistory(v2: unknown, v3: unknown, findings: Findings): boolean {
  if (!isEmpty(v3) || !(Array.isArray(v2) || isEmpty(v2))) return false
  if (!isEmpty(v2)) findings.agree('history-left-out', HISTORIES)
  else if (!Array.isArray(v2) || !Array.isArray(v3)) findings.agree('missing-null', HISTORIES)
  return true
}

const isEmpty = (histories: unknown): boolean =>
  histories === undefined || histories === null || (Array.isArray(histories) && histories.length === 0)

/**
 * Returns facts about a record, taken from the row of V2, or from the row of V3 if V2 lacks the record. `day` is the day of the session in
 * UTC. `learner` and `code` are ids of the service: hash them before storing them, and never log them.
 */
export function describeMark({ v2, v3 }: { readonly v2: unknown; readonly v3: unknown }) {
  const mark = isMembers(v2) ? v2 : isMembers(v3) ? v3 : {}
  const codeClass = codeClassOf(mark)
  return {
    learner: idOf(memberOf(mark, 'Learner')),
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
  // The ISO text of a year with more than four digits is longer. Such a year is not a real school day.
  return text.length === 24 ? text.slice(0, 10) : undefined
}

function traitsOf(mark: Members): readonly RecordTrait[] {
  const [minutes, comment] = [memberOf(mark, 'MinutesLate'), memberOf(mark, 'Comment')]
  const histories = memberOf(mark, HISTORIES)
  const traits: RecordTrait[] = []
  if (typeof minutes === 'number' && minutes > 0) traits.push('late')
  if (typeof comment === 'string' && comment !== '') traits.push('comment')
  if (Array.isArray(histories) && histories.length > 0) traits.push('correction')
  return traits
}
