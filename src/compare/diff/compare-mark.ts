import type { Comparison } from '../verdict.ts'
import { codeClassOf } from './classes.ts'
import { compareMembers, compareValues, type ValueForm } from './compare-values.ts'
import { Findings, type OwnRules, plainly } from './findings.ts'
import { idOf, isMembers, memberOf, type Members, momentOf } from './values.ts'

/** What a record shows that advice wants to have seen. */
export type RecordTrait = 'late' | 'comment' | 'correction'

/** Members of a flat mark (service.md 2.10 and 9) that are classed by what the booleans of their mark say: neither tells the code of a learner. */
const codes: ReadonlySet<string> = new Set(['Present', 'Absent', 'SchoolAttendanceCode'])
/** Texts of persons, in which a time or a guid means nothing. */
const texts: ReadonlySet<string> = new Set(['ChangeProcessName', 'Comment'])
const textForm: ValueForm = { text: 'text' }
const HISTORIES = 'AttendanceHistorys'

export interface MarkOptions {
  /** The partner's own rules; none by default. */
  readonly rules?: OwnRules | undefined
  /** Members that are not compared, such as `RecordedOn` of a reply; none by default. */
  readonly without?: ReadonlySet<string> | undefined
}

/**
 * Compares two flat marks that belong together, each as parsed JSON. A side that is not an object makes the record `unknown`. Never throws;
 * the result holds classes and no value.
 */
export function compareMark(v2: unknown, v3: unknown, { rules, without }: MarkOptions = {}): Comparison {
  if (!isMembers(v2) || !isMembers(v3)) return plainly('unknown')
  const findings = new Findings(rules)
  findMarkDifferences(v2, v3, findings, without)
  return findings.result()
}

/** Adds what differs between two marks to the findings. */
export function findMarkDifferences(
  v2: Members,
  v3: Members,
  findings: Findings,
  without?: ReadonlySet<string>,
): void {
  const codeForm: ValueForm = { text: 'any', classes: [codeClassOf(v2), codeClassOf(v3)] }
  compareMembers('', v2, v3, findings, (name, one, other) => {
    if (without?.has(name) === true) return true
    if (name === HISTORIES) return isLeftOut(one, other, findings)
    const form = codes.has(name) ? codeForm : texts.has(name) ? textForm : undefined
    if (form !== undefined) compareValues(name, one, other, findings, form)
    return form !== undefined
  })
}

/** The adapter leaves histories out by default: those of V2 that V3 does not show are equivalent. */
function isLeftOut(v2: unknown, v3: unknown, findings: Findings): boolean {
  if (!isEmpty(v3) || !(Array.isArray(v2) || isEmpty(v2))) return false
  if (!isEmpty(v2)) findings.agree('history-left-out', HISTORIES)
  else if (!Array.isArray(v2) || !Array.isArray(v3)) findings.agree('missing-null', HISTORIES)
  return true
}

const isEmpty = (histories: unknown): boolean =>
  histories === undefined || histories === null || (Array.isArray(histories) && histories.length === 0)

/**
 * Describes a record by V2's row, or by V3's where V2 has none, as reports group it and evidence counts it; `day` is that of the session, in UTC. Ids
 * and code are of the record: hash them before keeping, never log them.
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
  // A year of more than four digits is not a day of a school.
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
