import { isControlName } from './known-names.ts'
import { isMembers, momentOf } from './values.ts'
import { isGuid } from '../../odata/index.ts'

/** Deeper documents are no records of the service; without a bound, one could exhaust the stack. */
export const MAX_DEPTH = 16

/**
 * A text that is equal for values of the same content: whatever the order of members, the case of guids, the form of times, and whether
 * members are null or missing. `without`: members of the outermost object that do not count. It holds values: never kept.
 */
export function contentKey(value: unknown, without?: ReadonlySet<string>, depth = 0): string {
  if (depth > MAX_DEPTH) return '…'
  if (typeof value === 'string') return JSON.stringify(canonicalText(value))
  if (Array.isArray(value))
    return `[${value.map((element) => contentKey(element, undefined, depth + 1)).join()}]`
  if (!isMembers(value)) return String(value)
  const members = Object.keys(value)
    .filter((name) => value[name] !== null && !isControlName(name) && without?.has(name) !== true)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${contentKey(value[name], undefined, depth + 1)}`)
  return `{${members.join()}}`
}

function canonicalText(text: string): string {
  if (isGuid(text)) return text.toLowerCase()
  const moment = momentOf(text)
  return moment === undefined ? text : `${moment.seconds}.${moment.nanos}`
}
