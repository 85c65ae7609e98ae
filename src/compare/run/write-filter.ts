import type { Window } from './windows.ts'

/** A mark as it can be asked for again. */
export interface MarkKey {
  readonly learner: string
  readonly event: string
}

/**
 * Characters of a condition at most, as written into a query: IIS, which V2 runs behind, refuses a query string of more than 2,048
 * unless it is configured otherwise.
 */
const MAX_CHARACTERS = 1_700

/**
 * The raw query of a read of marks, the same text for both sides: V2's names (service.md 9), times with `Z` and guids bare
 * (service-facts 8). `learners` and `keys` narrow it further.
 */
export function writeMarkQuery(
  { fromMs, toMs }: Pick<Window, 'fromMs' | 'toMs'>,
  learners: readonly string[] | undefined,
  keys?: readonly MarkKey[],
): string {
  const conditions = [
    `AttendableEventStart ge ${formatTime(fromMs)}`,
    `AttendableEventStart lt ${formatTime(toMs)}`,
    ...(learners === undefined ? [] : [anyOf(learners.map(learnerIs))]),
    ...(keys === undefined ? [] : [anyOf(keys.map(keyIs))]),
  ]
  return `$filter=${encode(conditions.join(' and '))}`
}

/** The encoded condition of entities with one of these ids. */
export function writeIdFilter(ids: readonly string[]): string {
  return encode(anyOf(ids.map((id) => `ExternalID eq ${id}`)))
}

/** Divides learners into lists that fit into a query each. */
export function listLearners(learners: readonly string[]): readonly (readonly string[])[] {
  return divide(learners, ofLearner)
}

/** Divides keys into lists that fit into a query each. */
export function listKeys(keys: readonly MarkKey[]): readonly (readonly MarkKey[])[] {
  return divide(keys, keyIs)
}

function divide<Item>(items: readonly Item[], write: (item: Item) => string): readonly (readonly Item[])[] {
  const lists: Item[][] = []
  let room = 0
  for (const item of items) {
    const length = encode(` or ${write(item)}`).length
    if (length > room) {
      lists.push([])
      room = MAX_CHARACTERS
    }
    lists.at(-1)?.push(item)
    room -= length
  }
  return lists
}

/** The longest of the conditions that name one learner is that of a registration. */
const ofLearner = (id: string): string => `ExternalID eq ${id}`
const learnerIs = (id: string): string => `Learner eq ${id}`
const keyIs = ({ learner, event }: MarkKey): string =>
  `(Learner eq ${learner} and AttendableEvent eq ${event})`

function anyOf(conditions: readonly string[]): string {
  return conditions.length === 1 ? (conditions[0] ?? '') : `(${conditions.join(' or ')})`
}

/** Blanks as `+` would be read as blanks by most servers, `%20` by all. */
function encode(filter: string): string {
  return encodeURIComponent(filter)
}

/** Whole seconds: a date alone is an error (service-facts 8). */
function formatTime(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}
