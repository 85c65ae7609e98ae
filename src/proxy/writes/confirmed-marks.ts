import type { ConfirmedMark } from '../../translate/index.ts'
import type { V3Record, V3Reply } from '../../v3/index.ts'

/** The marks that V3 confirmed last in this process, by learner and event. */
export interface ConfirmedMarks {
  confirmed(key: string, reply: V3Reply): void
  of(key: string): ConfirmedMark | undefined
}

/** As many keys are kept at the least, and twice as many at the most: some 5 MB. */
const KEPT_KEYS = 8_192

/** What orders the marks of one learner and event: the key of their records. */
export function keyOf({ Attendee, Event }: V3Record): string {
  return `${Attendee.ExternalID} ${Event.ExternalID}`.toLowerCase()
}

/** Creates an empty memory. Old keys go by whole generations, so that keeping one costs a single entry. */
export function createConfirmedMarks(keptKeys = KEPT_KEYS): ConfirmedMarks {
  let young = new Map<string, ConfirmedMark | undefined>()
  let old = new Map<string, ConfirmedMark | undefined>()
  return {
    confirmed: (key, { ExternalID: externalId, RecordedOn: recordedOn }) => {
      if (young.size >= keptKeys) {
        old = young
        young = new Map()
      }
      // Not the reply, which the garbage collector would have to copy with all that it holds.
      young.set(key, typeof recordedOn === 'string' ? { externalId, recordedOn } : undefined)
    },
    of: (key) => (young.has(key) ? young.get(key) : old.get(key)),
  }
}
