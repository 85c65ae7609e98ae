import type { FlatReply } from '../v2/record/flat-reply.ts'
import type { V3Record, V3Reply } from '../v3/record/v3-record.ts'
import { type Echo, type EchoProfile, freshProfile, type Skew, skewOf } from './echo-profile.ts'
import { createRowReader } from './read-rules.ts'
import { isCutComment, isSameComment } from './stored-comment.ts'
import { coarsestMs, fittingTimes, KEPT_TIMES, OWN_TIME, parseTime } from './stored-time.ts'

/**
 * The result of a read of one learner and event for a write with an unknown outcome. `applied`: the current mark is the posted
 * one. `absent`: it is not, according to this read. `overwritten`: the current mark is newer and from another writer, and must
 * stay. `unclear`: the reply cannot be read.
 */
export type ReadBack =
  | {
      readonly kind: 'applied'
      readonly reply: V3Reply
      /** False if the mark may be an older one with the same content: then only a read that is not stale can decide. */
      readonly certain: boolean
      /** Present if the mark has exactly the posted millisecond: it then shows how the service stores values. */
      readonly proof: Echo['shown'] | undefined
    }
  | { readonly kind: 'absent' | 'overwritten' | 'unclear' }

/** The knowledge besides the reply. */
export interface ReadBackKnowledge {
  readonly profile: EchoProfile
  /** False if `RecordedOn` is not sent (`bodyProfile: minimal`): the service then returns its own time. */
  readonly timeSent: boolean
  /** True for a mark that the service confirmed for an earlier record, with the time that it returned. Default: for none. */
  readonly isConfirmed?: (externalId: string, recordedOn: string) => boolean
  /** The record may have been posted long before this receipt: a mark with its content counts, however old. */
  readonly anyAge?: boolean
  /** V2 may have applied the record: V2 stores a time of its own with each mark, whatever V3 does. Default: it has not. */
  readonly byV2?: boolean
}

/** The query that reads one learner and event; without a leading `?`, not encoded. */
export function toReadBackFilter({ Attendee, Event }: V3Record): string {
  return `Attendee/ExternalID eq ${Attendee.ExternalID} and Event/ExternalID eq ${Event.ExternalID}`
}

// A default mark has no RecordedBy, and a mark of the adapter may not have one either: every code counts here.
const readRow = createRowReader({
  wideRange: 'split',
  needsRecordedBy: false,
  unmarkedCodes: [],
  filterUpstream: false,
  histories: false,
})

const nothingKnown: ReadBackKnowledge = { profile: freshProfile, timeSent: true }

/**
 * Compares the mark in the V3 reply to `toReadBackFilter` with the posted one, given the profile of the service.
 * `posted.RecordedOn` is the time of receipt, even if it was not sent. The booleans are not compared: the service derives them
 * from the code.
 */
export function compareReadBack(
  posted: V3Record,
  answer: unknown,
  knowledge: ReadBackKnowledge = nothingKnown,
): ReadBack {
  const row = findStanding(posted, answer)
  if (row === 'unclear') return { kind: 'unclear' }
  if (row === undefined) return { kind: 'absent' }
  const content = compareContent(posted, row, knowledge.profile)
  const isConfirmed = isConfirmedMark(row, knowledge)
  const age = compareAge(posted, row, knowledge)
  // V2's clock may be behind: then it may be the record.
  if (knowledge.byV2 === true && content === 'alike' && age === 'likelyOlder') return { kind: 'unclear' }
  if (content === 'other' || (content === 'alike' && !mayBeAlike(age, knowledge)))
    return { kind: age === 'newer' && !isConfirmed ? 'overwritten' : 'absent' }
  const isOlder = age === 'older' && !(knowledge.anyAge === true && content === 'same')
  if (isOlder || (isConfirmed && age !== 'same')) return { kind: 'absent' }
  const certain = (age === 'same' || age === 'newer') && !isConfirmed
  const proof = certain && knowledge.timeSent ? proofOf(posted, row) : undefined
  return { kind: 'applied', reply: toReply(row), certain, proof }
}

/** The current mark of several for one learner and event: the newest, and of equally old ones the last. */
function findStanding(posted: V3Record, answer: unknown): FlatReply | 'unclear' | undefined {
  const rows = rowsOf(answer)
  if (rows === undefined) return 'unclear'
  let standing: FlatReply | undefined
  let standingMs = -Infinity
  for (const row of rows) {
    const flat = readRow(row)
    if (flat === 'unreadable') return 'unclear'
    if (flat === 'unmarked' || !isAbout(posted, flat)) continue
    const ms = parseTime(flat.RecordedOn)
    const orderMs = Number.isNaN(ms) ? -Infinity : ms
    if (orderMs < standingMs) continue
    standing = flat
    standingMs = orderMs
  }
  return standing
}

/**
 * `same`: the row has the posted values as the service stores them. `alike`: it may have, if the service cuts comments or changes
 * values by an unknown rule.
 */
function compareContent(posted: V3Record, row: FlatReply, profile: EchoProfile): 'same' | 'alike' | 'other' {
  if (!sameId(row.SchoolAttendanceCode, posted.AttendanceCode.ExternalID)) return 'other'
  const minutes = posted.Qualifier.MinutesLate ?? null
  const sameMinutes =
    row.MinutesLate === minutes || (!profile.nullsKept && (row.MinutesLate ?? 0) === (minutes ?? 0))
  if (!sameMinutes && !profile.minutesOpaque) return 'other'
  const [before, after] = [posted.Qualifier.Comment ?? '', row.Comment ?? '']
  const { cutLength, wholeLength } = profile
  if (isSameComment(before, after)) return sameMinutes ? 'same' : 'alike'
  if (profile.commentsOpaque) return 'alike'
  if (cutLength !== undefined && isCutComment(before, after, cutLength)) return sameMinutes ? 'same' : 'alike'
  // Blanks may have been trimmed where a comment was cut: the observed length is a minimum.
  const least = cutLength === undefined ? wholeLength : Math.max(wholeLength, cutLength + 1)
  return isCutComment(before, after, undefined, least) ? 'alike' : 'other'
}

/**
 * `likelyOlder`: by the client's time, which the service seems to keep, by far, or by the clock of V2. `unknown`: no time decides.
 */
type Age = 'same' | 'newer' | 'older' | 'likelyOlder' | 'unknown'

function compareAge(
  posted: V3Record,
  row: FlatReply,
  { profile, timeSent, byV2 = false }: ReadBackKnowledge,
): Age {
  const [postedMs, rowMs] = [parseTime(posted.RecordedOn), parseTime(row.RecordedOn)]
  if (Number.isNaN(postedMs) || Number.isNaN(rowMs)) return 'unknown'
  const kept = timeSent ? profile.times & KEPT_TIMES : 0
  if (fittingTimes(postedMs, rowMs, kept) !== 0) return 'same'
  if ((profile.times & OWN_TIME) === 0 && timeSent) {
    if (rowMs >= postedMs) return 'newer'
    return byV2 ? 'likelyOlder' : 'older'
  }
  const skew = kept === 0 ? skewOf(profile) : undefined
  if (skew !== undefined) {
    const age = compareOwnTime(postedMs, rowMs, skew)
    return byV2 && age === 'older' ? 'likelyOlder' : age
  }
  if (postedMs - rowMs > MAX_UNSEEN_SKEW_MS) return isOfSameProcess(posted, row) ? 'likelyOlder' : 'older'
  if (kept === 0) return 'unknown'
  if (rowMs > postedMs) return 'newer'
  return profile.timeSeen ? 'likelyOlder' : 'unknown'
}

/** Assumed bound of the service's clock before it was observed: a wrong time zone and some hours. */
const MAX_UNSEEN_SKEW_MS = 26 * 3_600_000

/** By the service's own time: between the two bounds of the skew the order is unknown. */
function compareOwnTime(postedMs: number, rowMs: number, { least, most }: Skew): Age {
  if (rowMs - least + coarsestMs < postedMs) return 'older'
  return rowMs - most > postedMs ? 'newer' : 'unknown'
}

/**
 * True for a mark that may be from this client: the time of another program's mark is its own, but a mark of this client that
 * seems days old may have been posted just now, to a service whose clock is that far behind.
 */
function isOfSameProcess(posted: V3Record, row: FlatReply): boolean {
  return row.ChangeProcessName !== null && row.ChangeProcessName === posted.ChangeProcessName
}

/** Values that are merely alike count as the posted ones unless the time contradicts. */
function mayBeAlike(age: Age, { profile, timeSent, byV2 = false }: ReadBackKnowledge): boolean {
  if (age === 'same') return true
  if (age !== 'newer' && age !== 'unknown') return false
  // A service that keeps the client's time would return it.
  return byV2 || !timeSent || !profile.timeSeen || (profile.times & KEPT_TIMES) === 0
}

/** True for the row of a mark that was confirmed before: it is not the posted one, or equals it. */
function isConfirmedMark({ ExternalID, RecordedOn }: FlatReply, { isConfirmed }: ReadBackKnowledge): boolean {
  return RecordedOn !== null && isConfirmed?.(ExternalID, RecordedOn) === true
}

/** A service with its own clock stores the posted millisecond only by chance. */
function proofOf(posted: V3Record, row: FlatReply): Echo['shown'] | undefined {
  const ms = parseTime(row.RecordedOn)
  if (ms % 1_000 === 0 || ms !== parseTime(posted.RecordedOn)) return undefined
  const { RecordedOn, MinutesLate, Comment } = row
  return { RecordedOn, Qualifier: { MinutesLate, Comment } }
}

function toReply(row: FlatReply): V3Reply {
  const { ExternalID, Present, Absent, RecordedOn, ChangeProcessName, AttendableEventStart } = row
  const RecordedBy = row.RecordedBy === null ? null : { ExternalID: row.RecordedBy }
  return { ExternalID, Present, Absent, RecordedOn, ChangeProcessName, AttendableEventStart, RecordedBy }
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
