import type { Comparison } from '../verdict.ts'
import { codeClassOf } from './classes.ts'
import { compareMembers, compareValues, type ValueForm } from './compare-values.ts'
import { Findings, type OwnRules, verdictOnly } from './findings.ts'
import { idOf, isMembers, memberOf, type Members, momentOf } from './values.ts'

/** A property of a record that must have been compared before the next rollout step is advised. */
export type RecordTrait = 'late' | 'comment' | 'correction'

/** Members of a flat mark (service.md 2.10 and 9) classified by the booleans of the mark, so that the class does not reveal the code. */
const codes: ReadonlySet<string> = new Set(['Present', 'Absent', 'SchoolAttendanceCode'])
/** Members with text that people wrote. Such text is never taken for a time or a GUID. */
const texts: ReadonlySet<string> = new Set(['ChangeProcessName', 'Comment'])
const textForm: ValueForm = { text: 'text' }
const HISTORIES = 'AttendanceHistorys'

export interface MarkOptions {
  /** Default: no rules. */
  readonly rules?: OwnRules | undefined
  /** Members that are not compared, such as `RecordedOn` of a reply. Default: none. */
  readonly without?: ReadonlySet<string> | undefined
}

/** Compares two flat marks, each as parsed JSON. The verdict is `unknown` if one side is not an object. Never throws. */
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

/** Accepts a history of V2 that V3 does not show, because the adapter omits histories by default. */
function acceptOmittedHistory(v2: unknown, v3: unknown, findings: Findings): boolean {
  if (!isEmpty(v3) || !(Array.isArray(v2) || isEmpty(v2))) return false
  if (!isEmpty(v2)) findings.agree('history-left-out', HISTORIES)
  else if (!Array.isArray(v2) || !Array.isArray(v3)) findings.agree('missing-null', HISTORIES)
  return true
}

const isEmpty = (histories: unknown): boolean =>
  histories === undefined || histories === null || (Array.isArray(histories) && histories.length === 0)

/**
 * Describes a record by V2's row, or by V3's if V2 lacks it. `day` is the day of the session in UTC. The ids and the code identify the
 * record: hash them before storing them, and never log them.
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
  // A year with more than four digits is not a real school day.
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
