/** The explanation of a class of differences. */
export interface Explanation {
  readonly title: string
  readonly meaning: string
  readonly cause: string
  readonly remedy: string
}

/** What a difference means for a school, the gravest first. */
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

/** An explanation and the classes that it applies to. `{field}` in a title stands for the path. */
interface ExplanationRow extends Explanation {
  readonly gravity: Gravity
  /** Matches `path kind v2Class v3Class`. */
  readonly when: RegExp
}

const ownRule = 'accept it with a rule of the partner (compare.rules: name, reason, owner, expiry)'

/** The first matching row explains a class. The last rows match by kind alone, and `other` matches everything else. */
const rows: readonly ExplanationRow[] = [
  {
    when: /^\(row\) onlyV2 /,
    gravity: 'records',
    title: 'Records that V3 does not have',
    meaning: 'V2 returned these records, and V3 through the adapter did not.',
    cause:
      'The marks were not carried over, V3 shows them later, or the adapter takes their rows for sessions without a mark: no RecordedBy, or a code of reads.unmarkedCodes.',
    remedy:
      'Check on a few days which it is. Set reads.needsRecordedBy: false if V3 leaves RecordedBy empty on real marks; correct reads.unmarkedCodes; else ask the operator of the service to carry the records over.',
  },
  {
    when: /^\(row\) onlyV3 /,
    gravity: 'records',
    title: 'Records that V2 does not have',
    meaning: 'V3 through the adapter returned these records, and V2 did not.',
    cause:
      'V3 shows sessions without a real mark as rows, marks were recorded in V3 only, or V2 had removed them.',
    remedy:
      'List the codes that mean "no mark" in reads.unmarkedCodes and keep reads.needsRecordedBy: true. Marks that other clients record in V3 are correct.',
  },
  {
    when: /^\(row\) unknown /,
    gravity: 'open',
    title: 'Records that could not be compared',
    meaning: 'One side did not answer for these records, or answered without a key to align them by.',
    cause: 'A service was unavailable or over its rate, V2 is switched off for them, or a reply was broken.',
    remedy: 'Run again with --resume, or later. The verdict stays open until they are compared.',
  },
  {
    when: /^(?:RecordedOn|AttendableEventStart) value .* time:[+-](?:3600|7200)s$/,
    gravity: 'detail',
    title: '{field} is shifted by an hour',
    meaning: 'Both sides have a time, and the instants are exactly one or two hours apart.',
    cause:
      'One side reads local time as UTC during daylight-saving time: the difference begins and ends with it.',
    remedy:
      'Confirm in the chart by day that it begins on the last Sunday of March or ends on that of October. Ask the operator of the service which side is right; clients that show times have to know before the change.',
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
    meaning: 'The same mark has another RecordedOn.',
    cause: 'V3 records its own time of arrival, or a mark was recorded again on one side.',
    remedy:
      'See which side has the time that the client sent. Clients that order corrections by RecordedOn are affected.',
  },
  {
    when: /^AttendableEventStart /,
    gravity: 'detail',
    title: 'The session starts at another time',
    meaning: 'Both sides know the session and give it another start.',
    cause: 'The timetable of the school was changed on one side.',
    remedy: 'Have the timetable corrected in the service: clients find sessions by this time.',
  },
  {
    when: /^Comment value .* cut$/,
    gravity: 'comment',
    title: 'Comments are cut',
    meaning: 'V3 has the beginning of the comment that V2 has.',
    cause: 'V3 keeps fewer characters than V2.',
    remedy: `Text is lost. Shorten comments in the client, or ${ownRule} with v3Class: "* cut" if the rest is not needed.`,
  },
  {
    when: /^Comment value .* (?:trimmed|spaces|normalised|case)$/,
    gravity: 'form',
    title: 'Comments are written in another form',
    meaning: 'The comments are equal but for blanks, the case of letters or their Unicode form.',
    cause: 'V3 trims or normalises text, or V2 stored what the client sent unchanged.',
    remedy: `No word is lost: ${ownRule} with its class, such as v3Class: "* trimmed".`,
  },
  {
    when: /^Comment (?:null|missing|extra|value) (?:null|missing|length:0) (?:null|missing|length:0)$/,
    gravity: 'form',
    title: 'No comment is written in another way',
    meaning: 'One side has null or nothing where the other has an empty text.',
    cause: 'The services store the absence of a comment differently.',
    remedy: `Clients that test for null only are affected; else ${ownRule}.`,
  },
  {
    when: /^Comment /,
    gravity: 'comment',
    title: 'Comments differ',
    meaning: 'The same mark has another comment, or a comment on one side only.',
    cause: 'A correction reached one side only, or V3 refuses some characters.',
    remedy: 'Compare the days: few and recent ones point to replication, all days to a rule of the service.',
  },
  {
    when: /^(?:SchoolAttendanceCode|Present|Absent) /,
    gravity: 'attendance',
    title: 'The attendance code differs ({field})',
    meaning:
      'The same mark has another code, or is present on one side and absent on the other. This changes attendance figures.',
    cause: 'The code tables of the two sides are not the same, or a correction reached one side only.',
    remedy:
      'Stop here. Compare the code tables of the school on both sides and have them aligned before a partner moves; this should never become a rule.',
  },
  {
    when: /^MinutesLate (?:null|missing|extra) (?:null|missing|number:0) (?:null|missing|number:0)$/,
    gravity: 'form',
    title: 'Not late is null on one side and 0 on the other',
    meaning: 'One side leaves MinutesLate empty where the other has 0.',
    cause: 'V3 stores a default of 0, or drops it for codes that are not late.',
    remedy: `No minute is lost: ${ownRule}.`,
  },
  {
    when: /^MinutesLate (?:null|missing|extra) /,
    gravity: 'lateness',
    title: 'Minutes of lateness are on one side only',
    meaning: 'One side leaves MinutesLate empty where the other has a number of minutes.',
    cause: 'One side drops minutes for codes that are not late, or a correction reached one side only.',
    remedy: 'Ask the operator of the service which codes keep minutes. Statutory returns use this figure.',
  },
  {
    when: /^MinutesLate /,
    gravity: 'lateness',
    title: 'Minutes of lateness differ',
    meaning: 'Both sides have a number of minutes, and not the same one.',
    cause: 'One side rounds or caps the minutes, or a correction reached one side only.',
    remedy:
      'Look at the classes of numbers: a cap shows as one class on V3. Statutory returns use this figure.',
  },
  {
    when: /^ExternalID /,
    gravity: 'detail',
    title: 'The same mark has another id',
    meaning: 'Learner and session agree, and the id of the mark does not.',
    cause: 'The mark was recorded again in V3, or V3 gives ids of its own.',
    remedy:
      'Clients that keep ids of marks will not find them by id after the change: have them read by learner and session, or have the ids carried over.',
  },
  {
    when: /^(?:Learner|AttendableEvent) /,
    gravity: 'attendance',
    title: 'The mark belongs to another learner or session',
    meaning: 'The id of the mark agrees, and its learner or session does not.',
    cause: 'Ids were given twice, or records were merged on one side.',
    remedy: 'Stop here and have the records of the service examined: this must never become a rule.',
  },
  {
    when: /^RecordedBy /,
    gravity: 'detail',
    title: 'Who recorded the mark differs',
    meaning: 'RecordedBy is empty on one side, or names another account.',
    cause: 'V3 records the account of the adapter or of the client, V2 that of the user.',
    remedy: `If no client shows it, ${ownRule}. With V3 rows without RecordedBy, set reads.needsRecordedBy: false, or marks vanish from reads.`,
  },
  {
    when: /^ChangeProcessName /,
    gravity: 'detail',
    title: 'The name of the process differs',
    meaning: 'The mark names another program as its origin.',
    cause: "V3 gets the partner's changeProcessName from the configuration, V2 had the client's own.",
    remedy: `Set changeProcessName of the partner to the name that V2 shows, or ${ownRule}.`,
  },
  {
    when: /^AttendanceHistorys[/ ]/,
    gravity: 'detail',
    title: 'Histories of marks differ',
    meaning: 'The list of earlier states of a mark is not the same.',
    cause: 'V3 keeps histories in a set of its own, which the adapter reads only on request.',
    remedy:
      'If clients read histories, set reads.histories: true (one more call for 40 marks); else the lists stay empty, which counts as equivalent.',
  },
  {
    when: /^\(row\) count /,
    gravity: 'records',
    title: 'A record occurs several times',
    meaning: 'One side returns the same record more often than the other.',
    cause: 'Overlapping pages of one service, or a mark that was recorded twice.',
    remedy: 'Run again with --noise: if V2 repeats itself, it is noise. Else have the duplicates removed.',
  },
  {
    when: /^\(row\) order /,
    gravity: 'form',
    title: 'Records come in another order',
    meaning: 'An order was asked for, and the two sides do not agree on it.',
    cause: 'The sides sort equal values, letters or null differently.',
    remedy:
      'Clients that page with $top and $skip need an order that is unique: let them add a key to $orderby.',
  },
  {
    when: /^reply\/status /,
    gravity: 'detail',
    title: 'The status of whole replies differs',
    meaning: 'V2 answered the request as a whole with another status.',
    cause:
      'V2 refused or accepted a request that the adapter judges otherwise, or V2 had a fault of its own at that time.',
    remedy:
      'A 5xx class of V2 is a fault of V2 and needs nothing. For 4xx classes compare docs/replies.md with what the client expects.',
  },
  {
    when: /^part\/status /,
    gravity: 'records',
    title: 'The status of records differs',
    meaning:
      'V2 accepted a record that the adapter refuses, or the other way round, or refused it with another status.',
    cause: "V2's validation is wider or narrower than that of the adapter and V3.",
    remedy:
      'Find the codes of the errors in the classes of errors/…: refused fields are unmappedFields and quirks of the partner.',
  },
  {
    when: /^(?:reply|part)\//,
    gravity: 'form',
    title: 'The form of the batch reply differs ({field})',
    meaning: "The adapter's reply nests, heads or wraps its parts otherwise than V2's.",
    cause: "The partner's layout or quirks are not those that V2 uses for it.",
    remedy:
      'Run compare learn for the partner and take over what it proposes. Strict clients read these lines; where clients ignore them, a rule of the partner accepts it.',
  },
  {
    when: /^errors[/ ]/,
    gravity: 'detail',
    title: 'Errors are worded or coded differently ({field})',
    meaning: 'Both sides refuse the record, with another code, message or number of errors.',
    cause: "V3's error is mapped to the default of V2, which this partner's V2 words otherwise.",
    remedy:
      'Run compare learn for the partner: it proposes the messages that V2 really sends. Clients that branch on codes are affected.',
  },
  {
    when: /\(other\)/,
    gravity: 'detail',
    title: 'Members that the model does not know',
    meaning: 'One side returns members that the description of the service does not have.',
    cause: 'An extension of the service, or more classes of differences than a run tells apart.',
    remedy: 'Read one record of each side by hand and see whether a client uses the member.',
  },
  {
    when: /^\S+ order /,
    gravity: 'form',
    title: 'The order of {field} differs',
    meaning: 'The same elements come in another order.',
    cause: 'The sides sort differently, or not at all.',
    remedy: `Clients that read lists by position are affected; else ${ownRule}.`,
  },
  {
    when: /^\S+ missing /,
    gravity: 'detail',
    title: 'V3 lacks {field}',
    meaning: 'V2 has a value for this field, and V3 through the adapter does not have the field.',
    cause:
      'V3 has no such field, shows it only with $expand, or keeps it back from this key for want of a security domain.',
    remedy:
      'Check the security domains of the V3 key and docs/protocol.md for the field; tell clients that read it.',
  },
  {
    when: /^\S+ extra /,
    gravity: 'form',
    title: 'V2 lacks {field}',
    meaning: 'V3 through the adapter has a field that V2 does not have.',
    cause: 'V3 knows more, or V2 leaves out what is empty.',
    remedy: `Clients that ignore unknown fields need nothing: ${ownRule}.`,
  },
  {
    when: /^\S+ null /,
    gravity: 'detail',
    title: '{field} is null on one side',
    meaning: 'One side has a value where the other has null.',
    cause: 'The value was not carried over, or one side stores a default.',
    remedy:
      'Compare the days: all of them point to a default of the service, few to records that were not carried over.',
  },
  {
    when: /^\S+ type /,
    gravity: 'detail',
    title: '{field} has another type',
    meaning: 'The sides give the field as another JSON type, such as text against number.',
    cause: 'The services serialise the field differently.',
    remedy: 'Strictly typed clients fail on this. Report it: the adapter has to convert the field.',
  },
  {
    when: /^\S+ count /,
    gravity: 'detail',
    title: '{field} has another number of elements',
    meaning: 'A list has more or fewer elements on one side.',
    cause: 'Elements were not carried over, or ended ones are left out on one side.',
    remedy:
      'See in the classes which side has more; ask the operator of the service whether ended elements are kept.',
  },
]

const other: Omit<ExplanationRow, 'when'> = {
  gravity: 'detail',
  title: 'The value of {field} differs',
  meaning: 'Both sides have a value for this field, and not the same one.',
  cause: 'A correction reached one side only, or the services derive the value differently.',
  remedy: 'Compare the days: few and recent ones point to replication, all days to a rule of the service.',
}

type ClassOfDifference = Readonly<Record<'path' | 'kind' | 'v2Class' | 'v3Class', string>>

const rowOf = ({ path, kind, v2Class, v3Class }: ClassOfDifference): Omit<ExplanationRow, 'when'> =>
  rows.find(({ when }) => when.test(`${path} ${kind} ${v2Class} ${v3Class}`)) ?? other

/** Explains a class of differences. Every class has an explanation. */
export function explain(found: ClassOfDifference): Explanation {
  const { title, meaning, cause, remedy } = rowOf(found)
  return { title: title.replace('{field}', () => found.path), meaning, cause, remedy }
}

export const gravityOf = (found: ClassOfDifference): Gravity => rowOf(found).gravity

/** The meaning of each built-in rule. Any other name belongs to a rule of the partner. */
const rules: Readonly<Record<string, string>> = {
  'missing-null': 'a member that is missing means null',
  'guid-case': 'guids are equal in any case',
  'instant-form': 'the same instant with another offset or precision',
  'order-unasked': 'another order where none was asked for',
  'history-left-out': 'histories that the adapter leaves out by default',
  'media-type-parameters': 'the same media type with other parameters',
  'context-address': 'the same context at another address',
  'servers-own-value': 'a value that every server draws for itself',
  'refused-whole': 'the request was refused as a whole on both sides',
  'expand-list-of-v3': 'a list that only the expand list of V3 names',
  'no-outcome-shown': 'the reply shows no outcome of the record',
  'process-name': 'the adapter writes under a name of its own (changeProcessName)',
  'assumed-refusal': 'V3 is taken to refuse what V2 refused, for the same reasons',
}

/** Returns the meaning of a built-in rule, or `undefined` for a rule of the partner. */
export function explainRule(rule: string): string | undefined {
  return Object.hasOwn(rules, rule) ? rules[rule] : undefined
}
