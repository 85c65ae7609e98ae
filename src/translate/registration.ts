import { type ExpandItem, parseExpand, parseQuery, printQuery, type QueryOptions } from '../odata/index.ts'
import { readGuidKey } from './read-key.ts'

const limits = { maxLength: 32_768, maxDepth: 100 }
const STATUSES = 'EnrolmentStatuses'

/**
 * The V3 query of a V2 read of `LearnerRegistations` (service.md 1.1): `expand=` and the other options get their `$`, and an
 * expanded `Enrolments` also expands `EnrolmentStatuses`, as the V3 list does. Custom options are dropped.
 * Error: `QueryError` (`ADP_QUERY`, 400) with option and position.
 */
export function toV3RegistrationQuery(rawQuery: string): string {
  const options = parseQuery(rawQuery, limits)
  if (options.expand === undefined) return printQuery(options)
  return printQuery({ ...options, expand: options.expand.map(withStatuses) })
}

const SET = /^learnerregistr?ations(?:\(|$)/i

/** The V3 path of a decoded V2 path of registrations: the set, or one of it by its key. Undefined: it leads below them, or has no such key. */
export function toV3RegistrationPath(path: string): string | undefined {
  const set = path.replace(/\/$/, '').split('/').at(-1) ?? ''
  if (!SET.test(set)) return undefined
  if (!set.includes('(')) return '/V3/LearnerRegistrations'
  const id = readGuidKey(set)
  return id === undefined ? undefined : `/V3/LearnerRegistrations(${id})`
}

function withStatuses(item: ExpandItem): ExpandItem {
  const name = item.path.map((segment) => segment.name).join('/')
  const asksMore = Object.keys(item.options).length > 0
  if (name !== 'Enrolments' || asksMore || item.suffix !== undefined) return item
  const options: QueryOptions = { expand: parseExpand(STATUSES) }
  return { ...item, options }
}
