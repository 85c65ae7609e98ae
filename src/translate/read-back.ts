import type { V3Record, V3Reply } from '../v3/record/v3-record.ts'
import { createRowReader } from './read-rules.ts'

/**
 * What a read of one learner and event tells of a write whose outcome is not known. `applied`: the mark stands, with the
 * service's own id. `absent`: it does not, as far as this read goes. `overwritten`: somebody else wrote a newer mark, which
 * must stand. `unclear`: the answer cannot be read.
 */
export type ReadBack =
  | { readonly kind: 'applied'; readonly reply: V3Reply }
  | { readonly kind: 'absent' | 'overwritten' | 'unclear' }

/** The query that reads one learner and event; without a leading `?`, not encoded. */
export function toReadBackFilter({ Attendee, Event }: V3Record): string {
  return `Attendee/ExternalID eq ${Attendee.ExternalID} and Event/ExternalID eq ${Event.ExternalID}`
}

// A default mark has no RecordedBy, and neither may one of ours: every code counts here.
const readRow = createRowReader({
  wideRange: 'split',
  needsRecordedBy: false,
  unmarkedCodes: [],
  filterUpstream: false,
  histories: false,
})

/**
 * Sets the V3 answer to `toReadBackFilter` against what was posted. Equal values of an older `RecordedOn` are an earlier mark
 * of the same kind, not this one. The booleans are not compared: the service knows them from the code.
 */
export function compareReadBack(posted: V3Record, answer: unknown): ReadBack {
  const rows = rowsOf(answer)
  if (rows === undefined) return { kind: 'unclear' }
  const postedMs = timeOf(posted.RecordedOn)
  let newer = false
  for (const row of rows) {
    const flat = readRow(row)
    if (flat === 'unreadable') return { kind: 'unclear' }
    if (flat === 'unmarked' || !isAbout(posted, flat)) continue
    const ageMs = timeOf(flat.RecordedOn) - postedMs
    const same =
      sameId(flat.SchoolAttendanceCode, posted.AttendanceCode.ExternalID) &&
      flat.MinutesLate === (posted.Qualifier.MinutesLate ?? null) &&
      (flat.Comment ?? '') === (posted.Qualifier.Comment ?? '')
    if (same && !(ageMs < 0)) {
      const { ExternalID, Present, Absent, RecordedOn, ChangeProcessName, AttendableEventStart } = flat
      const RecordedBy = flat.RecordedBy === null ? null : { ExternalID: flat.RecordedBy }
      const reply = {
        ExternalID,
        Present,
        Absent,
        RecordedOn,
        ChangeProcessName,
        AttendableEventStart,
        RecordedBy,
      }
      return { kind: 'applied', reply }
    }
    if (ageMs > 0) newer = true
  }
  return { kind: newer ? 'overwritten' : 'absent' }
}

function rowsOf(answer: unknown): readonly unknown[] | undefined {
  if (typeof answer !== 'object' || answer === null || !('value' in answer)) return undefined
  const { value } = answer
  return Array.isArray(value) ? value : undefined
}

function isAbout(
  posted: V3Record,
  row: { readonly Learner: string; readonly AttendableEvent: string },
): boolean {
  return (
    sameId(row.Learner, posted.Attendee.ExternalID) && sameId(row.AttendableEvent, posted.Event.ExternalID)
  )
}

function sameId(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}

/** NaN where there is none: every comparison with it is false. */
function timeOf(text: string | null | undefined): number {
  return text === null || text === undefined ? Number.NaN : Date.parse(text)
}
