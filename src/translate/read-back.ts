import { printFilter } from '../odata/index.ts'
import type { FlatReply } from '../v2/record/flat-reply.ts'
import type { V3Record, V3Reply } from '../v3/record.ts'
import type { Echo, EchoProfile } from './echo-profile.ts'
import { isOfMark } from './expressions.ts'
import { createRowReader } from './read-rules.ts'
import { readNextLink } from './next-link.ts'
import {
  isCutComment,
  isSameComment,
  isShownAs,
  isStoredAs,
  parseTime,
  precisionMsOf,
  WIDEST_SHIFT_MS,
} from './stored-values.ts'

/**
 * The finding of a read-back about a write with an unknown outcome. `applied`: V3 shows the mark. `absent`: this read does not show the
 * mark. `superseded`: a newer record in the journal replaces the write. `overwritten`: another client wrote a newer mark, which must stay.
 * `unclear`: none of these is certain.
 */
export type ReadBack =
  | {
      readonly kind: 'applied'
      readonly reply: V3Reply
      /** False if the mark may be an older mark with the same content. A stale read would show it too, so only the last read can decide. */
      readonly certain: boolean
      /**
       * The stored values if the time of the mark equals the posted time to the millisecond, which proves how the service stores values.
       * Otherwise `undefined`.
       */
      readonly proof: Echo['shown'] | undefined
    }
  | { readonly kind: 'absent' | 'superseded' | 'overwritten' | 'unclear' }

export interface ReadBackFacts {
  readonly profile: EchoProfile
  /** The earliest and the latest time at which the record can have been sent, in ms since the epoch. */
  readonly sent: { readonly fromMs: number; readonly toMs: number }
  /** Returns the times of the mark with this id, in ms since the epoch, as V3 confirmed them for older records of the key. */
  readonly confirmedAt: (externalId: string) => readonly number[]
  /** The older records of the key that also have an unknown outcome, as they were posted. */
  readonly lost: readonly V3Record[]
  /** The newer records of the key in the journal: `confirmed` if any was applied, `open` if any may still be applied. */
  readonly newer: 'none' | 'open' | 'confirmed'
  /** True if V2 may have applied the record. Its times then prove less, because the adapter never observed the clock of V2. */
  readonly byV2: boolean
  /** True if V3 may still be executing the `$batch` that contained the record, and may apply the record after this read. Default: false. */
  readonly executing?: boolean
}

/** Returns the V3 filter for the marks of one learner and event, not percent-encoded. */
export function toReadBackFilter(posted: V3Record): string {
  return printFilter(isOfMark(posted.Attendee.ExternalID, posted.Event.ExternalID))
}

// Accepts every row that has a code. RecordedBy is not required, because a mark that the adapter wrote may lack it.
const readRow = createRowReader({
  needsRecordedBy: false,
  unmarkedCodes: [],
  histories: false,
})

/** Returns the marks in V3's reply to `toReadBackFilter`, or `undefined` if the reply cannot be read. */
export function readMarks(posted: V3Record, answer: unknown): readonly FlatReply[] | undefined {
  const rows = rowsOf(answer)
  if (rows === undefined) return undefined
  const marks: FlatReply[] = []
  for (const row of rows) {
    const flat = readRow(row)
    // A mark whose code the service does not show may be the posted mark, so the reply counts as unreadable.
    if (flat === 'unreadable' || (flat === 'unmarked' && isObject(row) && isMade(row))) return undefined
    if (flat === 'unmarked' || !isAbout(posted, flat)) continue
    const { Present, Absent } = row as Partial<Record<'Present' | 'Absent', unknown>>
    // Fills in the posted value where the service does not show one.
    marks.push({
      ...flat,
      ...(typeof Present === 'boolean' ? {} : { Present: posted.Present }),
      ...(typeof Absent === 'boolean' ? {} : { Absent: posted.Absent }),
    })
  }
  return marks
}

/** Returns false if a mark has neither author nor time, like a default mark of the system. */
function isMade({ RecordedBy, RecordedOn }: Partial<Record<'RecordedBy' | 'RecordedOn', unknown>>): boolean {
  const by = isObject(RecordedBy) ? RecordedBy['ExternalID'] : RecordedBy
  return (by ?? RecordedOn ?? null) !== null
}

interface MarkFacts {
  /**
   * How the mark's values compare with the posted values. `none`: no mark. `same`: equal, except for changes that this service is known to
   * make. `alike`: possibly the posted values, changed by an unknown rule. `other`: different.
   */
  readonly content: 'none' | 'same' | 'alike' | 'other'
  /**
   * Whose mark it is. `confirmed`: that of an older record that V3 confirmed, with the same id and time. `perhaps`: the id of a confirmed
   * record, and a time that may be equal at another precision or in another time zone. `sameId`: the id of a confirmed record, and another
   * time. `lost`: not the posted content, but that of an older record with an unknown outcome. `default`: no author and no time, as in a
   * default mark of the system. `unknown`: none of these.
   */
  readonly identity: 'confirmed' | 'perhaps' | 'lost' | 'sameId' | 'default' | 'unknown'
  /**
   * The mark's time relative to the time at which the record was sent, with a tolerance for different clocks. `exact`: the posted time.
   * `longBefore`: older, whatever the time zone. `unclear`: no time, or too close to decide.
   */
  readonly time: 'exact' | 'longBefore' | 'older' | 'later' | 'unclear'
  readonly newer: ReadBackFacts['newer']
  readonly byV2: boolean
  readonly executing: boolean
}

type Rule = { readonly [Fact in keyof MarkFacts]?: readonly MarkFacts[Fact][] } & {
  readonly then: ReadBack['kind']
}

/**
 * The rules by which `decideReadBack` decides (decision 012). The first rule that fits applies. The rules consider the content and identity
 * of the mark and the order in the journal first, and times last, because clocks differ. They accept a mark with equal content whatever its
 * time, unless V3 may still be executing a `$batch`, and never lead to a post over a mark that may be newer.
 */
export const readBackRules: readonly Rule[] = [
  // While V3 may still be executing the `$batch`, the result is `applied` only for a mark with the posted time or a later time. A missing
  // mark may still appear, so the result is `unclear` in every other case.
  {
    executing: [true],
    content: ['same'],
    identity: ['sameId', 'unknown'],
    time: ['exact', 'later'],
    then: 'applied',
  },
  { executing: [true], content: ['alike'], identity: ['unknown'], time: ['exact', 'later'], then: 'applied' },
  { executing: [true], then: 'unclear' },
  { content: ['same'], then: 'applied' },
  { newer: ['confirmed'], then: 'superseded' },
  { content: ['none'], then: 'absent' },
  // Unclear, because the mark may belong to this record or to an older confirmed record.
  {
    content: ['alike'],
    identity: ['perhaps'],
    time: ['exact', 'older', 'later', 'unclear'],
    then: 'unclear',
  },
  { content: ['alike'], identity: ['confirmed'], time: ['exact'], then: 'unclear' },
  { identity: ['confirmed', 'perhaps', 'lost'], then: 'absent' },
  { content: ['alike'], time: ['exact'], then: 'applied' },
  { content: ['alike'], identity: ['unknown'], time: ['later', 'unclear'], then: 'applied' },
  { newer: ['open'], then: 'superseded' },
  { content: ['alike'], identity: ['sameId'], time: ['later', 'unclear'], then: 'unclear' },
  { content: ['alike'], time: ['older'], then: 'unclear' },
  { content: ['alike'], byV2: [true], then: 'unclear' },
  { identity: ['unknown'], time: ['later'], then: 'overwritten' },
  { time: ['older', 'longBefore'], then: 'absent' },
  // Absent, because the mark has the id of an older record and was not edited after this record was sent. This does not hold for V2, on
  // which another write may have edited the mark at that moment without the journal's knowledge.
  { identity: ['sameId'], time: ['unclear', 'exact'], byV2: [false], then: 'absent' },
  { then: 'unclear' },
]

/**
 * Decides the outcome of a record from the marks that were read. `posted.RecordedOn` must be the client's time or the time of receipt, even
 * if it was not sent. `Present` and `Absent` are not compared, because the service derives them from the code.
 */
export function decideReadBack(
  posted: V3Record,
  marks: readonly FlatReply[],
  facts: ReadBackFacts,
): ReadBack {
  const mark = findCurrentMark(posted, marks, facts)
  const { newer, byV2, executing = false } = facts
  const others = { newer, byV2, executing }
  const markFacts: MarkFacts =
    mark === undefined
      ? { content: 'none', identity: 'unknown', time: 'unclear', ...others }
      : { ...describe(posted, mark, facts), time: compareTime(posted, mark, facts), ...others }
  const kind = readBackRules.find((rule) => fits(rule, markFacts))?.then ?? 'unclear'
  if (kind !== 'applied' || mark === undefined) return { kind: kind === 'applied' ? 'unclear' : kind }
  const { identity, time } = markFacts
  const certain = !isKnown(identity) && (time === 'exact' || time === 'later')
  return { kind, reply: toReply(mark), certain, proof: certain ? proofOf(posted, mark) : undefined }
}

function describe(
  posted: V3Record,
  mark: FlatReply,
  facts: ReadBackFacts,
): Pick<MarkFacts, 'content' | 'identity'> {
  const content = compareContent(posted, mark, facts.profile)
  const isLost =
    content === 'other' && facts.lost.some((one) => compareContent(one, mark, facts.profile) !== 'other')
  const identity = identify(mark, facts)
  return { content, identity: isLost && !isKnown(identity) ? 'lost' : identity }
}

function fits({ content, identity, time, newer, byV2, executing }: Rule, markFacts: MarkFacts): boolean {
  return (
    content?.includes(markFacts.content) !== false &&
    identity?.includes(markFacts.identity) !== false &&
    time?.includes(markFacts.time) !== false &&
    newer?.includes(markFacts.newer) !== false &&
    byV2?.includes(markFacts.byV2) !== false &&
    executing?.includes(markFacts.executing) !== false
  )
}

/**
 * Returns the mark to examine if a service keeps several marks: the newest mark that may be the posted one, or otherwise the newest mark.
 * Of marks with equal times, returns the last. Skips default marks, which have neither author nor time, unless their content may be the
 * posted content, because a service may show null for both.
 */
function findCurrentMark(
  posted: V3Record,
  marks: readonly FlatReply[],
  facts: ReadBackFacts,
): FlatReply | undefined {
  const isOther = (mark: FlatReply): boolean => compareContent(posted, mark, facts.profile) === 'other'
  const made = marks.filter((mark) => isMade(mark) || !isOther(mark))
  const mayBePosted = (content: MarkFacts['content']): readonly FlatReply[] =>
    made.filter(
      (mark) =>
        !isKnown(identify(mark, facts)) &&
        compareContent(posted, mark, facts.profile) === content &&
        compareTime(posted, mark, facts) !== 'longBefore',
    )
  return newestOf(mayBePosted('same')) ?? newestOf(mayBePosted('alike')) ?? newestOf(made)
}

function newestOf(marks: readonly FlatReply[]): FlatReply | undefined {
  const orderOf = ({ RecordedOn }: FlatReply): number => {
    const ms = parseTime(RecordedOn)
    return Number.isNaN(ms) ? -Infinity : ms
  }
  return marks.reduce<FlatReply | undefined>(
    (newest, mark) => (newest !== undefined && orderOf(mark) < orderOf(newest) ? newest : mark),
    undefined,
  )
}

function identify(mark: FlatReply, { confirmedAt }: ReadBackFacts): MarkFacts['identity'] {
  const times = confirmedAt(mark.ExternalID)
  if (times.length === 0) return isMade(mark) ? 'unknown' : 'default'
  const markMs = parseTime(mark.RecordedOn)
  // An equal time proves the identity only with milliseconds, because two records may have the same whole second.
  if (markMs % 1_000 > 0 && times.includes(markMs)) return 'confirmed'
  const isShown = (ms: number): boolean => (Number.isNaN(markMs) ? Number.isNaN(ms) : isShownAs(ms, markMs))
  return times.some(isShown) ? 'perhaps' : 'sameId'
}

const isKnown = (identity: MarkFacts['identity']): boolean =>
  identity === 'confirmed' || identity === 'perhaps'

function compareContent(posted: V3Record, row: FlatReply, profile: EchoProfile): MarkFacts['content'] {
  if (!sameId(row.SchoolAttendanceCode, posted.AttendanceCode.ExternalID)) return 'other'
  const minutes = posted.Qualifier.MinutesLate ?? null
  const isKept = minutes === null ? profile.nullKept : profile.zeroKept
  const sameMinutes = row.MinutesLate === minutes || (!isKept && (row.MinutesLate ?? 0) === (minutes ?? 0))
  // Treats null as unknown until the service has shown such values, because it may show null although it stores a value (service.md 2).
  const isHidden = (value: unknown): boolean => value === null && !profile.qualifierShown
  if (!sameMinutes && !profile.minutesOpaque && !isHidden(row.MinutesLate)) return 'other'
  const [before, after] = [posted.Qualifier.Comment ?? '', row.Comment ?? '']
  const { cutLength, wholeLength } = profile
  if (isSameComment(before, after)) return sameMinutes ? 'same' : 'alike'
  if (profile.commentsOpaque) return 'alike'
  if (isHidden(row.Comment)) return 'alike'
  if (cutLength !== undefined && isCutComment(before, after, cutLength)) return sameMinutes ? 'same' : 'alike'
  // Starts above the observed cut length, which is a minimum because the service may have trimmed spaces at the cut.
  const least = cutLength === undefined ? wholeLength : Math.max(wholeLength, cutLength + 1)
  return isCutComment(before, after, undefined, least) ? 'alike' : 'other'
}

/** The assumed maximum difference between two clocks that are synchronised over the network, in milliseconds. */
const CLOCKS_DIFFER_MS = 1_000

function compareTime(posted: V3Record, mark: FlatReply, { sent, profile }: ReadBackFacts): MarkFacts['time'] {
  const markMs = parseTime(mark.RecordedOn)
  if (Number.isNaN(markMs)) return 'unclear'
  if (isStoredAs(parseTime(posted.RecordedOn), markMs)) return 'exact'
  const slackMs = profile.clockOffMs + precisionMsOf(markMs) + CLOCKS_DIFFER_MS
  if (markMs + slackMs + WIDEST_SHIFT_MS < sent.fromMs) return 'longBefore'
  if (markMs + slackMs < sent.fromMs) return 'older'
  return markMs - slackMs > sent.toMs ? 'later' : 'unclear'
}

/**
 * Returns the stored values if the mark has exactly the posted time and this time is not a whole second, or `undefined` otherwise. A
 * service that stores times of its own clock would store the same millisecond only by chance.
 */
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

/** Returns the rows of a reply, or `undefined` if it is no page or has a next link, because the next page may have the current mark. */
function rowsOf(answer: unknown): readonly unknown[] | undefined {
  if (!isObject(answer)) return undefined
  const { value } = answer
  if (readNextLink(answer).kind !== 'none') return undefined
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

export function toV2ReadBackFilter({ Attendee, Event }: V3Record): string {
  return `Learner eq ${Attendee.ExternalID} and AttendableEvent eq ${Event.ExternalID}`
}

/** Converts a page of flat V2 marks into the form that `readMarks` expects. Returns any other value unchanged. */
export function toV3Page(json: unknown): unknown {
  if (!isObject(json) || !Array.isArray(json['value'])) return json
  return { ...json, value: json['value'].map((row: unknown) => (isObject(row) ? toRow(row) : row)) }
}

function toRow(flat: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { Learner, AttendableEvent, SchoolAttendanceCode, RecordedBy, MinutesLate, Comment, ...rest } = flat
  const reference = (id: unknown): unknown => (typeof id === 'string' ? { ExternalID: id } : null)
  return {
    ...rest,
    Attendee: reference(Learner),
    Event: reference(AttendableEvent),
    AttendanceCode: reference(SchoolAttendanceCode),
    RecordedBy: reference(RecordedBy),
    Qualifier: { MinutesLate, Comment },
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
