import type { DifferenceKind } from '../verdict.ts'
import { classesOf, countClass, elementClass, type TextForm } from './classes.ts'
import { MAX_DEPTH } from './content-key.ts'
import type { Findings } from './findings.ts'
import { isControlName, OTHER_NAME, shownName } from './known-names.ts'
import { pairElements } from './pair-elements.ts'
import { isMembers, isSameGuid, isSameMoment, memberOf, type Members, momentOf } from './values.ts'

/** Compares two values of one member and says what it finds, by the built-in rules. */
export function compareValues(
  path: string,
  v2: unknown,
  v3: unknown,
  findings: Findings,
  form: TextForm = 'any',
  depth = 0,
): void {
  if (v2 === v3) return
  if (depth > MAX_DEPTH) {
    findings.giveUp()
    return
  }
  const kind = kindOf(v2, v3)
  if (kind === undefined) findings.agree('missing-null', path)
  else if (kind !== 'value') reportDifference(path, kind, v2, v3, findings, form)
  else if (Array.isArray(v2) && Array.isArray(v3)) compareLists(path, v2, v3, findings, depth)
  else if (isMembers(v2) && isMembers(v3)) compareMembers(path, v2, v3, findings, depth)
  else compareScalars(path, v2, v3, findings, form)
}

/** How the two are unlike each other before their values count; undefined: one is null and the other missing. */
function kindOf(v2: unknown, v3: unknown): DifferenceKind | undefined {
  if (v2 === undefined) return v3 === null ? undefined : 'extra'
  if (v3 === undefined) return v2 === null ? undefined : 'missing'
  if (v2 === null || v3 === null) return 'null'
  return typeof v2 === typeof v3 && Array.isArray(v2) === Array.isArray(v3) ? 'value' : 'type'
}

function compareScalars(path: string, v2: unknown, v3: unknown, findings: Findings, form: TextForm): void {
  const rule = form === 'any' && typeof v2 === 'string' && typeof v3 === 'string' ? ruleOf(v2, v3) : undefined
  if (rule === undefined) reportDifference(path, 'value', v2, v3, findings, form)
  else findings.agree(rule, path)
}

/** The built-in rule by which two different texts mean the same. */
function ruleOf(v2: string, v3: string): string | undefined {
  if (isSameGuid(v2, v3)) return 'guid-case'
  const from = momentOf(v2)
  const to = from === undefined ? undefined : momentOf(v3)
  return from !== undefined && to !== undefined && isSameMoment(from, to) ? 'instant-form' : undefined
}

function reportDifference(
  path: string,
  kind: DifferenceKind,
  v2: unknown,
  v3: unknown,
  findings: Findings,
  form: TextForm,
): void {
  const [v2Class, v3Class] = classesOf(v2, v3, form)
  findings.differ({ path, kind, v2Class, v3Class, v2, v3 })
}

/**
 * Compares two lists. What one side lacks is `missing` or `extra`; an element that occurs another number of times is a `count`. Another
 * order is equivalent, since `$orderby` orders no list inside a record.
 */
function compareLists(
  path: string,
  v2: readonly unknown[],
  v3: readonly unknown[],
  findings: Findings,
  depth: number,
): void {
  const { pairs, v2Only, v3Only, isInOrder } = pairElements(v2, v3)
  for (const pair of pairs) {
    if (pair.v2Count !== pair.v3Count) reportCount(path, pair.v2Count, pair.v3Count, findings)
    compareValues(path, pair.v2, pair.v3, findings, 'any', depth + 1)
  }
  if (!isInOrder) findings.agree('order-unasked', path)
  for (const value of v2Only) {
    const v2Class = elementClass(value)
    findings.differ({ path, kind: 'missing', v2Class, v3Class: 'missing', v2: value, v3: undefined })
  }
  for (const value of v3Only) {
    const v3Class = elementClass(value)
    findings.differ({ path, kind: 'extra', v2Class: 'missing', v3Class, v2: undefined, v3: value })
  }
}

/** Says that one thing occurs another number of times. */
export function reportCount(path: string, v2: number, v3: number, findings: Findings): void {
  const [v2Class, v3Class] = [countClass(v2), countClass(v3)]
  findings.differ({ path, kind: 'count', v2Class, v3Class, v2: undefined, v3: undefined })
}

/** Compares the members of two objects; `without`: names that are left out. */
export function compareMembers(
  path: string,
  v2: Members,
  v3: Members,
  findings: Findings,
  depth: number,
  without?: (name: string) => boolean,
): void {
  const compare = (name: string): void => {
    const target = pathTo(path, shownName(name))
    compareValues(target, memberOf(v2, name), memberOf(v3, name), findings, 'any', depth + 1)
  }
  const isCompared = (name: string): boolean => !isControlName(name) && without?.(name) !== true
  for (const name of Object.keys(v2)) if (isCompared(name)) compare(name)
  for (const name of Object.keys(v3)) if (!Object.hasOwn(v2, name) && isCompared(name)) compare(name)
}

/** Members below one that is not of the model add nothing to its path. */
function pathTo(path: string, name: string): string {
  if (path === '') return name
  return path.endsWith(OTHER_NAME) ? path : `${path}/${name}`
}
