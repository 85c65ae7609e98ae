import { isControlName } from './known-names.ts'
import { isMembers, momentOf } from './values.ts'
import { isGuid } from '../../odata/index.ts'

/** Deeper documents are no records of the service; without a bound, one could exhaust the stack. */
export const MAX_DEPTH = 16

export interface KeyOptions {
  /** Members of the outermost object that do not count. */
  readonly without?: ReadonlySet<string>
  /** True: texts and nulls as they are, so that equal keys are equal values. */
  readonly exact?: boolean
}

/**
 * A text that is equal for values of the same content: whatever the order of members, the case of guids, the form of times, and whether
 * members are null or missing. It holds values: never kept.
 */
export function contentKey(value: unknown, { without, exact = false }: KeyOptions = {}, depth = 0): string {
  if (depth > MAX_DEPTH) return '…'
  const inside = (member: unknown): string => contentKey(member, { exact }, depth + 1)
  if (typeof value === 'string') return JSON.stringify(exact ? value : canonicalText(value))
  if (Array.isArray(value)) return `[${value.map(inside).join()}]`
  if (!isMembers(value)) return String(value)
  const members = Object.keys(value)
    .filter((name) => (exact || value[name] !== null) && !isControlName(name) && without?.has(name) !== true)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${inside(value[name])}`)
  return `{${members.join()}}`
}

function canonicalText(text: string): string {
  if (isGuid(text)) return text.toLowerCase()
  const moment = momentOf(text)
  return moment === undefined ? text : `${moment.seconds}.${moment.nanos}`
}
