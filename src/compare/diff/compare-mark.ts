import type { Comparison } from '../verdict.ts'
import { codeClassOf, type TextForm } from './classes.ts'
import { compareMembers, compareValues } from './compare-values.ts'
import { createFindings, type Findings, SAME, UNKNOWN } from './findings.ts'
import { isControlName } from './known-names.ts'
import type { DiffOptions } from './options.ts'
import type { ValueDifference } from './own-rules.ts'
import { isMembers, memberOf, type Members } from './values.ts'

/** Members of a flat mark (service.md 2.10 and 9) and how their texts are compared; the histories have rules of their own. */
const fields: readonly (readonly [name: string, form: TextForm | 'code'])[] = [
  ['ExternalID', 'any'],
  ['Present', 'code'],
  ['Absent', 'code'],
  ['RecordedOn', 'any'],
  ['ChangeProcessName', 'text'],
  ['AttendableEventStart', 'any'],
  ['RecordedBy', 'any'],
  ['Learner', 'any'],
  ['AttendableEvent', 'any'],
  ['SchoolAttendanceCode', 'code'],
  ['MinutesLate', 'any'],
  ['Comment', 'text'],
]
const HISTORIES = 'AttendanceHistorys'
const fieldNames: ReadonlySet<string> = new Set([...fields.map(([name]) => name), HISTORIES])

/**
 * Compares two flat marks that belong together, each as parsed JSON. A side that is not an object makes the record `unknown`. Never throws;
 * the result holds classes and no value.
 */
export function compareMark(v2: unknown, v3: unknown, options: DiffOptions = {}): Comparison {
  if (!isMembers(v2) || !isMembers(v3)) return UNKNOWN
  if (isSameMark(v2, v3)) return SAME
  const findings = createFindings(options.rules)
  findMarkDifferences(v2, v3, findings, options.without)
  return findings.result()
}

/** Adds what differs between two marks to the findings. */
export function findMarkDifferences(
  v2: Members,
  v3: Members,
  findings: Findings,
  without?: ReadonlySet<string>,
): void {
  for (const [name, form] of fields) {
    if (without?.has(name) === true) continue
    const [one, other] = [memberOf(v2, name), memberOf(v3, name)]
    if (one === other) continue
    if (form === 'code') compareCode(name, v2, v3, findings)
    else compareValues(name, one, other, findings, form)
  }
  if (without?.has(HISTORIES) !== true) compareHistories(v2, v3, findings)
  compareMembers('', v2, v3, findings, 0, (name) => fieldNames.has(name) || without?.has(name) === true)
}

/** Equality of every member, before any rule: most marks end here. */
function isSameMark(v2: Members, v3: Members): boolean {
  return (
    v2['ExternalID'] === v3['ExternalID'] &&
    v2['Present'] === v3['Present'] &&
    v2['Absent'] === v3['Absent'] &&
    v2['RecordedOn'] === v3['RecordedOn'] &&
    v2['ChangeProcessName'] === v3['ChangeProcessName'] &&
    v2['AttendableEventStart'] === v3['AttendableEventStart'] &&
    v2['RecordedBy'] === v3['RecordedBy'] &&
    v2['Learner'] === v3['Learner'] &&
    v2['AttendableEvent'] === v3['AttendableEvent'] &&
    v2['SchoolAttendanceCode'] === v3['SchoolAttendanceCode'] &&
    v2['MinutesLate'] === v3['MinutesLate'] &&
    v2['Comment'] === v3['Comment'] &&
    isSameHistories(v2[HISTORIES], v3[HISTORIES]) &&
    hasNoOthers(v2) &&
    hasNoOthers(v3)
  )
}

const isSameHistories = (v2: unknown, v3: unknown): boolean =>
  v2 === v3 || (Array.isArray(v2) && Array.isArray(v3) && v2.length === 0 && v3.length === 0)

/** True where every member is one of a mark's. */
function hasNoOthers(mark: Members): boolean {
  // The usual mark has all members and no other; counting is cheaper than looking each of them up.
  let count = 0
  for (const name in mark) if (name !== '') count += 1
  return (count === fieldNames.size && hasAllFields(mark)) || Object.keys(mark).every(isFieldOrControl)
}

/** Members that are there although they are undefined would make another one pass for them: JSON has none. */
const hasAllFields = (mark: Members): boolean =>
  mark['ExternalID'] !== undefined &&
  mark['Present'] !== undefined &&
  mark['Absent'] !== undefined &&
  mark['RecordedOn'] !== undefined &&
  mark['ChangeProcessName'] !== undefined &&
  mark['AttendableEventStart'] !== undefined &&
  mark['RecordedBy'] !== undefined &&
  mark['Learner'] !== undefined &&
  mark['AttendableEvent'] !== undefined &&
  mark['SchoolAttendanceCode'] !== undefined &&
  mark['MinutesLate'] !== undefined &&
  mark['Comment'] !== undefined &&
  mark[HISTORIES] !== undefined

const isFieldOrControl = (name: string): boolean => fieldNames.has(name) || isControlName(name)

/** The class of a code, and of the booleans that go with it, is what the booleans say of it: neither tells the code of a learner. */
function compareCode(name: string, v2: Members, v3: Members, findings: Findings): void {
  const differ = (difference: ValueDifference): void => {
    const isValue = difference.kind === 'value' && typeof difference.v2 !== 'object'
    const v2Class = isValue ? codeClassOf(v2) : undefined
    const v3Class = isValue ? codeClassOf(v3) : undefined
    findings.differ({
      ...difference,
      ...(v2Class !== undefined && { v2Class }),
      ...(v3Class !== undefined && { v3Class }),
    })
  }
  compareValues(name, memberOf(v2, name), memberOf(v3, name), { ...findings, differ })
}

/** The adapter leaves histories out by default: those of V2 that V3 does not show are equivalent. */
function compareHistories(v2: Members, v3: Members, findings: Findings): void {
  const [one, other] = [memberOf(v2, HISTORIES), memberOf(v3, HISTORIES)]
  if (isSameHistories(one, other)) return
  if (isEmpty(other) && (Array.isArray(one) || isEmpty(one))) findings.agree('history-left-out', HISTORIES)
  else compareValues(HISTORIES, one, other, findings)
}

const isEmpty = (histories: unknown): boolean =>
  histories === undefined || histories === null || (Array.isArray(histories) && histories.length === 0)
