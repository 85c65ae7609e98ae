import type { ReplyPartForm } from '../../v2/index.ts'
import type { PlannedRecord } from '../../writes/plan.ts'

/** The parts of V2's reply by the records that they answer. */
export interface MatchedParts {
  /** In the order of the records; undefined: V2 has no part for it. */
  readonly parts: readonly ({ readonly form: ReplyPartForm; readonly isInOrder: boolean } | undefined)[]
  /** Parts that answer no record. */
  readonly extra: number
}

/** Matches by Content-ID where each record has one of its own and each part names one of them, else by position, as a client would. */
export function matchParts(records: readonly PlannedRecord[], parts: readonly ReplyPartForm[]): MatchedParts {
  const ids = records.map(({ answering }) => answering.contentId)
  const known = new Map<string, number>()
  for (const [index, form] of parts.entries()) {
    const id = contentIdOf(form)
    if (id !== undefined) known.set(id, index)
  }
  const own = new Set(ids)
  const isById =
    known.size === parts.length &&
    own.size === ids.length &&
    ids.every((id) => id !== undefined) &&
    [...known.keys()].every((id) => own.has(id))
  const indexOf = (id: string | undefined, position: number): number | undefined =>
    isById && id !== undefined ? known.get(id) : position
  let taken = 0
  const matched = ids.map((id, position) => {
    const index = indexOf(id, position)
    const form = index === undefined ? undefined : parts[index]
    if (form === undefined) return undefined
    taken += 1
    return { form, isInOrder: index === position }
  })
  return { parts: matched, extra: parts.length - taken }
}

const contentIdOf = ({ mime, http }: ReplyPartForm): string | undefined =>
  new Map(mime).get('content-id') ?? new Map(http).get('content-id')
