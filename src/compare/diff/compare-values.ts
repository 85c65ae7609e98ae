import { attendanceV2Model } from '../../model/attendance.ts'
import { serviceModel } from '../../model/service-model.ts'
import type { DifferenceKind } from '../verdict.ts'
import { alignRows, type Keys, movedRecords } from './align.ts'
import { classesOf, countClass, elementClass, type TextForm } from './classes.ts'
import type { Findings } from './findings.ts'
import {
  contentKey,
  idOf,
  isControlName,
  isMembers,
  isSameGuid,
  isSameMoment,
  MAX_DEPTH,
  memberOf,
  type Members,
  momentOf,
} from './values.ts'

export interface ValueForm {
  readonly text: TextForm
  /** The classes to report for two different scalars, instead of the classes of their values. */
  readonly classes?: readonly [v2: string | undefined, v3: string | undefined]
}

const anyForm: ValueForm = { text: 'any' }

export function compareValues(
  path: string,
  v2: unknown,
  v3: unknown,
  findings: Findings,
  form: ValueForm = anyForm,
  depth = 0,
): void {
  if (v2 === v3) return
  if (depth > MAX_DEPTH) {
    findings.markUnknown()
    return
  }
  const kind = kindOf(v2, v3)
  if (kind === undefined) findings.agree('missing-null', path)
  else if (kind !== 'value') findings.differ(path, kind, classesOf(v2, v3, form.text))
  else if (Array.isArray(v2) && Array.isArray(v3)) compareLists(path, v2, v3, findings, depth)
  else if (isMembers(v2) && isMembers(v3)) compareMembers(path, v2, v3, findings, undefined, depth)
  else compareScalars(path, v2, v3, findings, form)
}

/** Returns the kind of a difference, or `undefined` if the member is null on one side and missing on the other (equivalent). */
function kindOf(v2: unknown, v3: unknown): DifferenceKind | undefined {
  if (v2 === undefined) return v3 === null ? undefined : 'extra'
  if (v3 === undefined) return v2 === null ? undefined : 'missing'
  if (v2 === null || v3 === null) return 'null'
  return typeof v2 === typeof v3 && Array.isArray(v2) === Array.isArray(v3) ? 'value' : 'type'
}

function compareScalars(path: string, v2: unknown, v3: unknown, findings: Findings, form: ValueForm): void {
  const isAnyText = form.text === 'any' && typeof v2 === 'string' && typeof v3 === 'string'
  const rule = isAnyText ? ruleOf(v2, v3) : undefined
  if (rule !== undefined) {
    findings.agree(rule, path)
    return
  }
  const [v2Class, v3Class] = classesOf(v2, v3, form.text)
  findings.differ(path, 'value', [form.classes?.[0] ?? v2Class, form.classes?.[1] ?? v3Class])
}

/** Returns the built-in rule by which two different texts have the same meaning, or `undefined` if no rule applies. */
function ruleOf(v2: string, v3: string): string | undefined {
  if (isSameGuid(v2, v3)) return 'guid-case'
  const from = momentOf(v2)
  const to = from === undefined ? undefined : momentOf(v3)
  return from !== undefined && to !== undefined && isSameMoment(from, to) ? 'instant-form' : undefined
}

/**
 * Compares the members of two objects. Compares a member by value unless `compareOwn` returns true, which means that it has compared the
 * member.
 */
export function compareMembers(
  path: string,
  v2: Members,
  v3: Members,
  findings: Findings,
  compareOwn?: (name: string, v2: unknown, v3: unknown) => boolean,
  depth = 0,
): void {
  for (const name of new Set([...Object.keys(v2), ...Object.keys(v3)])) {
    if (isControlName(name)) continue
    const [one, other] = [memberOf(v2, name), memberOf(v3, name)]
    if (one === other || compareOwn?.(name, one, other) === true) continue
    compareValues(pathTo(path, name), one, other, findings, anyForm, depth + 1)
  }
}

const OTHER_NAME = '(other)'

const names: ReadonlySet<string> = new Set([
  'ExternalID',
  ...[serviceModel, attendanceV2Model].flatMap(({ schemas }) =>
    schemas.flatMap(({ complexTypes, entityTypes }) =>
      [...complexTypes, ...entityTypes].flatMap(({ properties, navigation }) =>
        [...properties, ...navigation].map(({ name }) => name),
      ),
    ),
  ),
])

/** Returns true if the model of the service defines this member. Any other name may contain personal data. */
export const isServiceMember = (name: string): boolean => names.has(name)

/**
 * Appends the name of a member to a path. A path that ends in `(other)` stays unchanged, so that names below an unknown member do not
 * appear.
 */
function pathTo(path: string, name: string): string {
  const shown = isServiceMember(name) ? name : OTHER_NAME
  if (path === '') return shown
  return path.endsWith(OTHER_NAME) ? path : `${path}/${shown}`
}

/**
 * Compares two lists. Elements are aligned by `ExternalID`, or by content if they have no id. The kind of a difference is `missing` if only
 * V2 has the element, `extra` if only V3 has it, and `count` if one side has it more often. Another order is equivalent, since `$orderby`
 * does not order lists inside a record.
 */
function compareLists(
  path: string,
  v2: readonly unknown[],
  v3: readonly unknown[],
  findings: Findings,
  depth: number,
): void {
  const { records } = alignRows(v2, v3, elementKeys)
  const compare = (one: unknown, other: unknown): void =>
    compareValues(path, one, other, findings, anyForm, depth + 1)
  for (const one of records) {
    const [v2Count, v3Count] = [one.v2.rows.length, one.v3.rows.length]
    if (v2Count === 0 || v3Count === 0) continue
    if (v2Count !== v3Count) findings.differ(path, 'count', [countClass(v2Count), countClass(v3Count)])
    compare(one.v2.rows[0], one.v3.rows[0])
  }
  if (movedRecords(records).size > 0) findings.agree('order-unasked', path)
  const v2Only = records.flatMap((one) => (one.v3.at === -1 ? one.v2.rows : []))
  const v3Only = records.flatMap((one) => (one.v2.at === -1 ? one.v3.rows : []))
  // If exactly one element without an id remains on each side, the two count as one element with changed content.
  if (v2Only.length === 1 && v3Only.length === 1 && ![...v2Only, ...v3Only].some(elementIdOf)) {
    compare(v2Only[0], v3Only[0])
    return
  }
  for (const value of v2Only) findings.differ(path, 'missing', [elementClass(value), 'missing'])
  for (const value of v3Only) findings.differ(path, 'extra', ['missing', elementClass(value)])
}

const elementIdOf = (value: unknown): string | undefined =>
  isMembers(value) ? idOf(memberOf(value, 'ExternalID')) : undefined

const elementKeys: Keys = { keyOf: (value) => elementIdOf(value) ?? `content ${contentKey(value)}` }
