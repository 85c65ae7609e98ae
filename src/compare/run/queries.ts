import { AdapterError } from '../../errors.ts'
import { isGuid } from '../../odata/index.ts'
import { toV3RegistrationQuery } from '../../translate/index.ts'
import type { Window } from './windows.ts'

/** The query of each side. */
interface WindowQueries {
  readonly v2: string
  readonly v3: string
}

/**
 * The raw query of a read of marks, the same text for both sides: V2's names (service.md 9), times with `Z` and guids bare
 * (service-facts 8). `learners` narrow it further.
 */
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

/** The expand list of registrations at V2, as its clients write it: without `$` (service.md 1.1). */
const EXPAND = 'expand=Enrolments,BoarderStatuses,PartTimeRecords,UPNHistory'

/** The query of registrations: V2's own, and what the adapter makes of it for V3. */
export function writeRegistrationQueries(learners: readonly string[] | undefined): WindowQueries {
  const filter =
    learners === undefined ? '' : `&$filter=${encodeURIComponent(anyOf(learners.map(learnerIs)))}`
  const v2 = EXPAND + filter
  return { v2, v3: toV3RegistrationQuery(v2) }
}

/**
 * Characters of a condition at most, as written into a query: IIS, which V2 runs behind, refuses a query string of more than 2,048
 * unless it is configured otherwise.
 */
const MAX_CHARACTERS = 1_700

/** Divides learners into lists that fit into a query each. */
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

/** The longest of the conditions that name one learner is that of a registration. */
const learnerIs = (id: string): string => `ExternalID eq ${id}`

const anyOf = (conditions: readonly string[]): string =>
  conditions.length === 1 ? (conditions[0] ?? '') : `(${conditions.join(' or ')})`

/** Whole seconds: a date alone is an error (service-facts 8). */
const formatTime = (ms: number): string => new Date(ms).toISOString().replace('.000Z', 'Z')

/** Faulty lines that are named. */
const MAX_NAMED = 10

/**
 * Reads a list of learners: one guid a line, blank lines and lines that begin with `#` left out, each learner once.
 * Error: `ADP_USAGE` with `name` and the numbers of the lines that are none, never with their text.
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
      `${name}: The list of learners has no guid in ${named}. Write one guid a line.`,
    )
  }
  if (ids.size === 0) throw new AdapterError('ADP_USAGE', `${name}: The list of learners is empty.`)
  return [...ids]
}
