export interface Explanation {
  readonly title: string
  readonly meaning: string
  readonly cause: string
  readonly remedy: string
}

/** The effects that a difference can have on a school, the most serious first. */
export const gravities = ['attendance', 'records', 'lateness', 'comment', 'detail', 'form', 'open'] as const
export type Gravity = (typeof gravities)[number]

export const gravityTexts: Readonly<Record<Gravity, string>> = {
  attendance: 'Attendance codes change',
  records: 'Records are on one side only',
  lateness: 'Minutes of lateness change',
  comment: 'Comments change',
  detail: 'Other details differ',
  form: 'Only the form differs',
  open: 'Could not be compared',
}

/** An explanation with the classes of differences that it applies to. `{field}` in a title stands for the path. */
interface ExplanationRow extends Explanation {
  readonly gravity: Gravity
  /** Matches a class of differences, written as `path kind v2Class v3Class`. */
  readonly when: RegExp
}

const ownRule =
  'accept the difference with a rule of the partner (compare.rules: name, reason, owner, expiry)'

/** The first matching row explains a class. The last rows match any path with a certain kind. `other` explains all remaining classes. */
const rows: readonly ExplanationRow[] = [
  {
    when: /^\(row\) onlyV2 /,
    gravity: 'records',
    title: 'Records that V3 does not have',
    meaning: 'V2 returned these records, and V3 through the adapter did not.',
    cause:
      'The marks were not migrated, V3 shows them later, or the adapter takes their rows for sessions without a mark (no RecordedBy, or a code in reads.unmarkedCodes).',
    remedy:
      'Find the cause on a few sample days. If V3 leaves RecordedBy empty on real marks, set reads.needsRecordedBy: false. If a code is wrong, correct reads.unmarkedCodes. Otherwise ask the operator of the service to migrate the records.',
  },
  {
    when: /^\(row\) onlyV3 /,
    gravity: 'records',
    title: 'Records that V2 does not have',
    meaning: 'V3 through the adapter returned these records, and V2 did not.',
    cause: 'V3 shows rows for sessions without a mark, the marks exist in V3 only, or V2 removed them.',
    remedy:
      'List the codes that mean "no mark" in reads.unmarkedCodes and keep reads.needsRecordedBy: true. Marks that other clients record in V3 are correct.',
  },
  {
    when: /^\(row\) unknown /,
    gravity: 'open',
    title: 'Records that could not be compared',
    meaning: 'One side did not answer for these records, or answered without a key to align them by.',
    cause:
      'A service was unavailable or over its rate limit, V2 is switched off for these records, or a reply was malformed.',
    remedy: 'Run the comparison again later. The outcome stays open until the records are compared.',
  },
  {
    when: /^(?:RecordedOn|AttendableEventStart) value .* time:[+-](?:3600|7200)s$/,
    gravity: 'detail',
    title: '{field} is shifted by an hour',
    meaning: 'Both sides have a time, and the instants are exactly one or two hours apart.',
    cause: 'One side reads local time as UTC, so the times differ during daylight-saving time.',
    remedy:
      'Check in the chart by day that the difference begins on the last Sunday of March or ends on the last Sunday of October. Ask the operator of the service which side is right, and tell clients that show times before the migration.',
  },
  {
    when: /^RecordedOn value .* time:[+-]<1s$/,
    gravity: 'form',
    title: 'Fractions of a second are cut in {field}',
    meaning: 'The times are less than a second apart.',
    cause: 'One side stores a coarser precision than the other.',
    remedy: `If no client compares these times for equality, ${ownRule} with v3Class: time:*<1s.`,
  },
  {
    when: /^RecordedOn /,
    gravity: 'detail',
    title: 'The time of recording differs',
    meaning: 'The same mark has a different RecordedOn.',
    cause: 'V3 stores the time at which it received the mark, or the mark was recorded again on one side.',
    remedy:
      'Find out which side has the time that the client sent. Clients that order corrections by RecordedOn are affected.',
  },
  {
    when: /^AttendableEventStart /,
    gravity: 'detail',
    title: 'The session starts at a different time',
    meaning: 'Both sides have the session, with different start times.',
    cause: 'The timetable of the school was changed on one side.',
    remedy: 'Have the timetable corrected in the service, since clients find sessions by this time.',
  },
  {
    when: /^Comment value .* cut$/,
    gravity: 'comment',
    title: 'Comments are cut',
    meaning: 'V3 has only the beginning of the comment in V2.',
    cause: 'V3 keeps fewer characters than V2.',
    remedy: `Text is lost. Shorten comments in the client, or ${ownRule} with v3Class: "* cut" if the rest is not needed.`,
  },
  {
    when: /^Comment value .* (?:trimmed|spaces|normalised|case)$/,
    gravity: 'form',
    title: 'Comments differ in form only',
    meaning: 'The comments differ only in spaces, upper and lower case, or Unicode form.',
    cause: 'V3 trims or normalises text, or V2 stored what the client sent unchanged.',
    remedy: `No word is lost, so ${ownRule} with the class, such as v3Class: "* trimmed".`,
  },
  {
    when: /^Comment (?:null|missing|extra|value) (?:null|missing|length:0) (?:null|missing|length:0)$/,
    gravity: 'form',
    title: 'An absent comment has another form',
    meaning: 'One side has null or no member where the other has an empty text.',
    cause: 'The services store the absence of a comment differently.',
    remedy: `Only clients that test for null are affected. If there are none, ${ownRule}.`,
  },
  {
    when: /^Comment /,
    gravity: 'comment',
    title: 'Comments differ',
    meaning: 'The same mark has different comments, or a comment on one side only.',
    cause: 'A correction reached one side only, or V3 rejects some characters.',
    remedy:
      'Look at the days on which the difference occurs. If it occurs on a few recent days, replication was late. If it occurs on all days, a rule of the service causes it.',
  },
  {
    when: /^(?:SchoolAttendanceCode|Present|Absent) /,
    gravity: 'attendance',
    title: 'The attendance code differs ({field})',
    meaning:
      'The same mark has different codes, or says that the learner is present on one side and absent on the other. This changes attendance figures.',
    cause: 'The code tables of the two sides are not the same, or a correction reached one side only.',
    remedy:
      'Do not migrate the partner. Compare the code tables of the school on both sides and have them aligned first. Never accept this difference with a rule.',
  },
  {
    when: /^MinutesLate (?:null|missing|extra) (?:null|missing|number:0) (?:null|missing|number:0)$/,
    gravity: 'form',
    title: 'MinutesLate is null on one side and 0 on the other',
    meaning: 'One side leaves MinutesLate empty where the other has 0.',
    cause: 'V3 stores 0 as the default, or drops minutes for codes that do not mean late.',
    remedy: `No minute is lost, so ${ownRule}.`,
  },
  {
    when: /^MinutesLate (?:null|missing|extra) /,
    gravity: 'lateness',
    title: 'Minutes of lateness are on one side only',
    meaning: 'One side leaves MinutesLate empty where the other has a number of minutes.',
    cause: 'One side drops minutes for codes that do not mean late, or a correction reached one side only.',
    remedy:
      'Ask the operator of the service which codes keep minutes. Statutory returns use the minutes of lateness.',
  },
  {
    when: /^MinutesLate /,
    gravity: 'lateness',
    title: 'Minutes of lateness differ',
    meaning: 'Both sides have minutes, and the numbers differ.',
    cause: 'One side rounds or caps the minutes, or a correction reached one side only.',
    remedy:
      "Compare the classes of V3's numbers in all differences of MinutesLate. If there is only one class, V3 probably caps the minutes. Statutory returns use the minutes of lateness.",
  },
  {
    when: /^ExternalID /,
    gravity: 'detail',
    title: 'The same mark has a different id',
    meaning: 'Learner and session agree, but the ids of the mark differ.',
    cause: 'The mark was recorded again in V3, or V3 assigns its own ids.',
    remedy:
      'Clients that store ids of marks will not find these marks by id after the migration. Let the clients read by learner and session, or have the ids migrated.',
  },
  {
    when: /^(?:Learner|AttendableEvent) /,
    gravity: 'attendance',
    title: 'The mark belongs to another learner or session',
    meaning: 'The ids of the mark agree, but its learner or session differs.',
    cause: 'Ids were assigned twice, or records were merged on one side.',
    remedy:
      'Do not migrate the partner. Have the records of the service examined. Never accept this difference with a rule.',
  },
  {
    when: /^RecordedBy /,
    gravity: 'detail',
    title: 'The recorder of the mark differs',
    meaning: 'RecordedBy is empty on one side, or names different accounts.',
    cause: 'V3 stores the account of the adapter or the client, and V2 the account of the user.',
    remedy: `If no client shows RecordedBy, ${ownRule}. If V3 has marks without RecordedBy, set reads.needsRecordedBy: false, or reads omit these marks.`,
  },
  {
    when: /^ChangeProcessName /,
    gravity: 'detail',
    title: 'The name of the process differs',
    meaning: 'The mark names different programs as its origin.',
    cause: "V3 gets the partner's changeProcessName from the configuration, and V2 got the client's name.",
    remedy: `Set the partner's changeProcessName to the name that V2 shows, or ${ownRule}.`,
  },
  {
    when: /^AttendanceHistorys[/ ]/,
    gravity: 'detail',
    title: 'Histories of marks differ',
    meaning: 'The lists of earlier states of a mark differ.',
    cause: 'V3 stores histories in an entity set that the adapter reads only if configured.',
    remedy:
      'If clients read histories, set reads.histories: true (one more call per 40 marks). Otherwise the lists stay empty, which counts as equivalent.',
  },
  {
    when: /^\(row\) count /,
    gravity: 'records',
    title: 'A record occurs several times',
    meaning: 'One side returns the same record more often than the other.',
    cause: 'The pages of one service overlap, or a mark was recorded twice.',
    remedy:
      'Run again with --noise. If V2 repeats records at random, the difference is noise. Otherwise remove the duplicates.',
  },
  {
    when: /^\(row\) order /,
    gravity: 'form',
    title: 'Records come in a different order',
    meaning: 'The query asked for an order, and the two sides sort differently.',
    cause: 'The sides sort equal values, letters or null differently.',
    remedy: 'Clients that page with $top and $skip need a unique order. Let them add a key to $orderby.',
  },
  {
    when: /^reply\/status /,
    gravity: 'detail',
    title: 'The status of whole replies differs',
    meaning: 'V2 answered the whole request with a different status.',
    cause: 'V2 and the adapter disagree on whether the request is valid, or V2 failed at that time.',
    remedy:
      'A 5xx class of V2 is a failure of V2 and needs no action. For 4xx classes compare docs/replies.md with what the client expects.',
  },
  {
    when: /^part\/status /,
    gravity: 'records',
    title: 'The status of records differs',
    meaning:
      'V2 or the adapter refuses a record that the other accepts, or both refuse it with different statuses.',
    cause: "V2's validation is stricter or more lenient than that of the adapter and V3.",
    remedy:
      'Find the error codes in the classes of errors/…. Which fields the adapter refuses depends on unmappedFields and the quirks of the partner.',
  },
  {
    when: /^(?:reply|part)\//,
    gravity: 'form',
    title: 'The form of the batch reply differs ({field})',
    meaning: "The adapter's reply has other nesting, headers or envelopes than V2's reply.",
    cause: "The partner's layout or quirks do not match V2's replies to this partner.",
    remedy:
      'Run compare learn for the partner and apply what it proposes. If clients ignore the difference, accept it with a rule of the partner.',
  },
  {
    when: /^errors[/ ]/,
    gravity: 'detail',
    title: 'Errors have different codes or texts ({field})',
    meaning: 'Both sides refuse the record, with different codes, messages or numbers of errors.',
    cause: "The adapter maps V3's error to V2's default text, and V2 sends this partner another text.",
    remedy:
      'Run compare learn for the partner, which proposes the messages that V2 really sends. Clients that branch on codes are affected.',
  },
  {
    when: /\(other\)/,
    gravity: 'detail',
    title: 'Members that the model does not define',
    meaning: 'One side returns members that the model of the service does not define.',
    cause: 'The service has an extension, or the run has too many classes of differences.',
    remedy: 'Read one record on each side by hand and check whether a client uses the member.',
  },
  {
    when: /^\S+ order /,
    gravity: 'form',
    title: 'The order of {field} differs',
    meaning: 'The same elements come in a different order.',
    cause: 'The sides sort differently, or not at all.',
    remedy: `Clients that read lists by position are affected. If there are none, ${ownRule}.`,
  },
  {
    when: /^\S+ missing /,
    gravity: 'detail',
    title: 'V3 lacks {field}',
    meaning: 'V2 has a value for this field, and V3 through the adapter does not have the field.',
    cause: 'V3 lacks the field, needs $expand to show it, or hides it from this key (security domain).',
    remedy:
      'Check the security domains of the V3 key, and docs/protocol.md for the field. Inform clients that read the field.',
  },
  {
    when: /^\S+ extra /,
    gravity: 'form',
    title: 'V2 lacks {field}',
    meaning: 'V3 through the adapter has a field that V2 does not have.',
    cause: 'V3 has more fields, or V2 omits empty fields.',
    remedy: `Clients that ignore unknown fields are not affected, so ${ownRule}.`,
  },
  {
    when: /^\S+ null /,
    gravity: 'detail',
    title: '{field} is null on one side',
    meaning: 'One side has a value where the other has null.',
    cause: 'The value was not migrated, or one side stores a default.',
    remedy:
      'Look at the days on which the difference occurs. If it occurs on all days, one side stores a default. If it occurs on a few days, records were not migrated.',
  },
  {
    when: /^\S+ type /,
    gravity: 'detail',
    title: '{field} has a different type',
    meaning: 'The sides return the field in different JSON types, such as text and number.',
    cause: 'The services serialise the field differently.',
    remedy: 'Strictly typed clients fail. Report a bug: the adapter has to convert the field.',
  },
  {
    when: /^\S+ count /,
    gravity: 'detail',
    title: '{field} has a different number of elements',
    meaning: 'A list has more or fewer elements on one side.',
    cause: 'Elements were not migrated, or one side omits ended elements.',
    remedy:
      'The classes show which side has more. Ask the operator of the service whether ended elements are kept.',
  },
]

const other: Omit<ExplanationRow, 'when'> = {
  gravity: 'detail',
  title: 'The value of {field} differs',
  meaning: 'Both sides have a value for this field, and the values differ.',
  cause: 'A correction reached one side only, or the services derive the value differently.',
  remedy:
    'Look at the days on which the difference occurs. If it occurs on a few recent days, replication was late. If it occurs on all days, a rule of the service causes it.',
}

type ClassOfDifference = Readonly<Record<'path' | 'kind' | 'v2Class' | 'v3Class', string>>

const rowOf = ({ path, kind, v2Class, v3Class }: ClassOfDifference): Omit<ExplanationRow, 'when'> =>
  rows.find(({ when }) => when.test(`${path} ${kind} ${v2Class} ${v3Class}`)) ?? other

export function explain(found: ClassOfDifference): Explanation {
  const { title, meaning, cause, remedy } = rowOf(found)
  return { title: title.replace('{field}', () => found.path), meaning, cause, remedy }
}

export const gravityOf = (found: ClassOfDifference): Gravity => rowOf(found).gravity

/** The meanings of the built-in rules. A name that is missing here belongs to a rule of the partner. */
const rules: Readonly<Record<string, string>> = {
  'missing-null': 'a missing member means null',
  'guid-case': 'upper and lower case are equal in GUIDs',
  'instant-form': 'the same instant with another offset or precision',
  'order-unasked': 'a different order, which the query did not specify',
  'history-left-out': 'histories that the adapter omits by default',
  'media-type-parameters': 'the same media type with other parameters',
  'context-address': 'the same context at another address',
  'servers-own-value': 'a value that the server chooses',
  'refused-whole': 'both sides refused the whole request',
  'expand-list-of-v3': 'a list that only V3 expands',
  'no-outcome-shown': 'the reply does not show the outcome of the record',
}

export function explainRule(rule: string): string | undefined {
  return Object.hasOwn(rules, rule) ? rules[rule] : undefined
}
