import { AdapterError } from '../../errors.ts'
import { isGuid } from '../../odata/index.ts'
import { toV3RegistrationQuery } from '../../translate/index.ts'
import type { Window } from './windows.ts'

interface WindowQueries {
  readonly v2: string
  readonly v3: string
}

/** Returns the query of marks for both sides, with names of V2 (service.md 9), times with `Z`, and unquoted GUIDs (service-facts 8). */
export function writeMarkQuery(
  { fromMs, toMs }: Pick<Window, 'fromMs' | 'toMs'>,
  learners: readonly string[] | undefined,
): WindowQueries {
  const conditions = [
    `AttendableEventStart ge ${formatTime(fromMs)}`,
    `AttendableEventStart lt ${formatTime(toMs)}`,
    ...(learners === undefined ? [] : [anyOf(learners.map((id) => `Learner eq ${id}`))]),
  ]
  const query = `$filter=${encodeURIComponent(conditions.join(' and '))}`
  return { v2: query, v3: query }
}

/** The expand list of registrations as V2 clients write it, without `$` (service.md 1.1). */
const EXPAND = 'expand=Enrolments,BoarderStatuses,PartTimeRecords,UPNHistory'

/** Returns the query of registrations for V2, and the query for V3 that the adapter derives from it. */
export function writeRegistrationQueries(learners: readonly string[] | undefined): WindowQueries {
  const filter =
    learners === undefined ? '' : `&$filter=${encodeURIComponent(anyOf(learners.map(learnerIs)))}`
  const v2 = EXPAND + filter
  return { v2, v3: toV3RegistrationQuery(v2) }
}

/** The maximum length of an encoded condition. IIS, which runs in front of V2, refuses query strings over 2,048 characters by default. */
const MAX_CHARACTERS = 1_700

export function listLearners(learners: readonly string[]): readonly (readonly string[])[] {
  const lists: string[][] = []
  let room = 0
  for (const id of learners) {
    const length = encodeURIComponent(` or ${learnerIs(id)}`).length
    if (length > room) {
      lists.push([])
      room = MAX_CHARACTERS
    }
    lists.at(-1)?.push(id)
    room -= length
  }
  return lists
}

/**
 * Returns the condition for one learner in a query of registrations. `listLearners` measures this condition, since it is longer than the
 * condition for a learner in a query of marks.
 */
const learnerIs = (id: string): string => `ExternalID eq ${id}`

const anyOf = (conditions: readonly string[]): string =>
  conditions.length === 1 ? (conditions[0] ?? '') : `(${conditions.join(' or ')})`

/** Formats a time in whole seconds. The service requires a time of day and refuses plain dates (service-facts 8). */
const formatTime = (ms: number): string => new Date(ms).toISOString().replace('.000Z', 'Z')

const MAX_NAMED = 10

/**
 * Parses a list of learners, one GUID per line, with `#` comments. Throws `ADP_USAGE` with the numbers of faulty lines, but not their text.
 */
export function parseLearnerList(text: string, name: string): readonly string[] {
  const lines = text.replace(/^\ufeff/, '').split(/\r\n|\n|\r/)
  const ids = new Set<string>()
  const faulty: number[] = []
  for (const [index, line] of lines.entries()) {
    const id = line.trim()
    if (id === '' || id.startsWith('#')) continue
    if (isGuid(id)) ids.add(id.toLowerCase())
    else faulty.push(index + 1)
  }
  if (faulty.length > 0) {
    const more = faulty.length > MAX_NAMED ? ` and ${faulty.length - MAX_NAMED} more` : ''
    const named = `line${faulty.length === 1 ? '' : 's'} ${faulty.slice(0, MAX_NAMED).join(', ')}${more}`
    throw new AdapterError(
      'ADP_USAGE',
      `${name}: The list of learners has no GUID in ${named}. Nothing was compared. Write one GUID per line.`,
    )
  }
  if (ids.size === 0)
    throw new AdapterError(
      'ADP_USAGE',
      `${name}: The list of learners is empty. Nothing was compared. Write one GUID per line.`,
    )
  return [...ids]
}
