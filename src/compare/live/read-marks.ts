import type { SideAnswer } from './ask-sides.ts'
import { type FlatMark, markKey, marksOf } from './flat-mark.ts'
import type { MarkPlace } from './latest-marks.ts'
import { idOfMark, readBody } from './reply-bodies.ts'

/** A mark that one side has accepted, and that the other side is to show. */
export interface FollowedMark {
  readonly learner: string
  readonly event: string
  /** As the side that served it says, or as it was sent. */
  readonly mark: FlatMark
  readonly place: MarkPlace
}

/** Asks a side for the rows of a V2 `$filter`. */
export type AskMarks = (filter: string) => Promise<SideAnswer>

/** What a side shows of some marks, where it could be read. */
export type MarksRead =
  | { readonly kind: 'read'; readonly seenOf: (followed: FollowedMark) => FlatMark | undefined }
  | Exclude<SideAnswer, { readonly kind: 'answered' }>

/** Learners in one call: the line of the request stays short enough for gateways. */
export const MAX_LEARNERS = 25

/** Reads marks of one event, at most `MAX_LEARNERS`. */
export async function readMarks(ask: AskMarks, marks: readonly FollowedMark[]): Promise<MarksRead> {
  const answer = await ask(filterOf(marks))
  if (answer.kind !== 'answered') return answer
  const rows = answer.status < 300 ? marksOf(readBody(answer.text)) : undefined
  if (rows === undefined) return { kind: 'unknown' }
  const byKey = Map.groupBy(rows, (row) => markKey(row) ?? '')
  return {
    kind: 'read',
    seenOf: ({ learner, event, mark }) =>
      standing(byKey.get(`${learner} ${event}`.toLowerCase()) ?? [], mark),
  }
}

/** The V2 filter of marks of one event. */
export function filterOf(marks: readonly FollowedMark[]): string {
  const event = `AttendableEvent eq ${marks[0]?.event ?? ''}`
  const learners = marks.map(({ learner }) => `Learner eq ${learner}`)
  return `${event} and ${learners.length === 1 ? learners.join('') : `(${learners.join(' or ')})`}`
}

/** What is followed, in groups of one event that are read together. */
export function groupsOf<Item extends { readonly followed: FollowedMark }>(
  items: readonly Item[],
): readonly (readonly Item[])[] {
  const byEvent = Map.groupBy(items, ({ followed }) => followed.event.toLowerCase())
  return [...byEvent.values()].flatMap((own) => {
    const count = Math.ceil(own.length / MAX_LEARNERS)
    return Array.from({ length: count }, (_, at) => own.slice(at * MAX_LEARNERS, (at + 1) * MAX_LEARNERS))
  })
}

/** Of several marks of one learner and event the one with the same id, else the last. */
function standing(rows: readonly FlatMark[], mark: FlatMark): FlatMark | undefined {
  const id = idOfMark(mark)
  return rows.find((row) => id !== undefined && idOfMark(row) === id) ?? rows.at(-1)
}
