import { dayMs, dayNumber, formatInstant, schoolYearOf } from '../../dates.ts'
import type { Identities } from '../../identity.ts'
import type { Random } from '../../random.ts'
import type { Pupil } from '../pupil.ts'
import { schoolDayAfter } from '../terms.ts'
import type { Contact, Home } from './contact.ts'
import { listedReference } from './value-lists.ts'

/** A JSON value. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json }

/** The input of the fields of one entity. */
export interface FieldContext {
  readonly ids: Identities
  readonly random: Random
  readonly pupil: Pupil
  /** Calendar year of the September in which the school year of the plan began. */
  readonly year: number
  readonly home: Home
  readonly contacts: readonly Contact[]
  /** The contact that the entity is, or belongs to. */
  readonly contact: Contact | undefined
  /** Position in its collection, from 0. */
  readonly index: number
  /** The fields that are made already. */
  readonly made: Readonly<Record<string, Json>>
}

/** Undefined leaves the choice to the type of the field. */
export type Rule = (context: FieldContext) => Json | undefined

/** Recent records lie before the school year of the plan, and so before today. */
export function startOf(year: number): number {
  return dayNumber(`${year}-09-01`)
}

/** Midnight of a day as the service writes dates. */
export function dateOf(day: number): string {
  return formatInstant(day * dayMs)
}

const digits = (random: Random, count: number): string =>
  Array.from({ length: count }, () => String(random.below(10))).join('')
const share =
  (probability: number): Rule =>
  ({ random }) =>
    random.chance(probability)
const recent =
  (days: number): Rule =>
  ({ random, year }) =>
    dateOf(startOf(year) - random.below(days))
const sometimes =
  (probability: number, text: string): Rule =>
  ({ random }) =>
    random.chance(probability) ? text : null
const title = (gender: 'Female' | 'Male', random: Random): string =>
  gender === 'Male' ? 'Mr' : random.pick(['Mrs', 'Ms', 'Miss'])
const fullTitle: Rule = ({ contact, random, pupil }) =>
  contact === undefined
    ? `Parents of ${pupil.forename} ${pupil.surname}`
    : `${title(contact.gender, random)} ${contact.forename.charAt(0)} ${contact.surname}`

/** Rules for a field of one type, by `Type.Field`. They win over those by name. */
const byType: Readonly<Record<string, Rule>> = {
  'LearnerIdentifier.Forename': ({ pupil }) => pupil.forename,
  'LearnerIdentifier.Surname': ({ pupil }) => pupil.surname,
  // Values that depend on today are filled in when they are read (learner/as-of-today.ts).
  'LearnerIdentifier.AgeMonths': () => null,
  'LearnerIdentifier.OnRollState': () => null,
  'LearnerIdentifier.CurrentYearGroup': () => null,
  'LearnerIdentifier.CurrentPrimaryClass': () => null,
  'LearnerIdentifier.CurrentHouse': () => null,
  'LearnerEnrolment.DateOfAdmission': ({ pupil }) => dateOf(pupil.admissionDay),
  'LearnerEnrolment.DateOfLeaviing': ({ pupil }) => dateOf(pupil.leavingDay),
  'LearnerEnrolment.DestinationStartDate': ({ pupil }) => dateOf(schoolDayAfter(pupil.leavingDay)),
  'LearnerEnrolment.ReasonForLeaving': ({ pupil, ids, random }) =>
    listedReference(ids, 'ReasonForLeavingRef', isEndOfPhase(pupil) ? 'END' : random.pick(['TRF', 'MOV'])),
  'LearnerEnrolmentStatus.StartDate': ({ pupil }) => dateOf(pupil.admissionDay),
  'LearnerEnrolmentStatus.EndDate': ({ pupil }) => dateOf(pupil.leavingDay),
  'LearnerPersonal.DateOfBirth': ({ pupil }) => dateOf(pupil.birthDay),
  'LearnerPersonal.DateOfDeath': () => null,
  'LearnerPersonal.Title': () => null,
  'LearnerMedical.IsPregnant': () => false,
  'LearnerTransport.TravelRoute': ({ random }) => (random.chance(0.1) ? undefined : null),
  'LearnerCultural.DateOfEntryIntoEWBES': ({ random, pupil }) =>
    random.chance(0.08) ? dateOf(pupil.admissionDay) : null,
  'AttendanceSummary.Year': ({ index, year }) => `${year - 1 - index}/${year - index}`,
  'AttendanceSummary.PossibleSessions': () => 380,
  'AttendanceSummary.AttendanceSessions': ({ random }) => 340 + random.below(40),
  'AttendanceSummary.AuthorisedSessions': ({ made }) =>
    Math.floor((380 - Number(made['AttendanceSessions'])) / 2),
  'AttendanceSummary.UnauthorisedSessions': ({ made }) =>
    380 - Number(made['AttendanceSessions']) - Number(made['AuthorisedSessions']),
  'SENEvent.EndTime': () => 'PT15H30M',
}

/** Whether the enrolment ends with Year 6. */
function isEndOfPhase({ entryYear, leavingDay }: Pupil): boolean {
  return schoolYearOf(leavingDay + 1) === entryYear + 6
}

/** Rules for fields of this name in every type. */
const byName: Readonly<Record<string, Rule>> = {
  Forename: ({ contact, pupil }) => (contact ?? pupil).forename,
  MiddleName: ({ contact }) => contact?.middleName ?? null,
  MiddleNames: ({ contact }) => contact?.middleName ?? null,
  Surname: ({ contact, pupil }) => (contact ?? pupil).surname,
  LegalForename: ({ pupil }) => pupil.forename,
  LegalMiddleNames: ({ pupil }) => pupil.middleName,
  LegalSurname: ({ pupil }) => pupil.surname,
  PreferredForename: ({ pupil }) => pupil.forename,
  PreferredSurname: ({ pupil }) => pupil.surname,
  GenderCategory: ({ pupil }) => pupil.gender,
  // Who starts next September has applied already.
  DateOfApplication: ({ pupil, random, year }) =>
    dateOf(Math.min(pupil.admissionDay, startOf(year)) - 60 - random.below(200)),
  DateOfBirth: ({ contact, pupil }) => dateOf((contact ?? pupil).birthDay),
  DateChanged: recent(900),
  StartDate: recent(900),
  FromDate: recent(900),
  InformationReceivedDate: recent(900),
  EndDate: ({ made, random }) => endOf(made['StartDate'], random),
  ToDate: ({ made, random }) => endOf(made['FromDate'], random),
  ReviewDate: ({ random, year }) => dateOf(startOf(year) + random.below(300)),
  ExpiryDate: ({ random, year }) => dateOf(startOf(year) + random.below(1800)),
  DateCeased: () => null,
  StartTime: () => 'PT14H',
  Salutation: fullTitle,
  Addressee: fullTitle,
  ParentalSalutation: fullTitle,
  ParentalAddressee: fullTitle,
  Honours: () => null,
  JobTitle: sometimes(0.3, 'Manager'),
  PlaceOfWork: sometimes(0.3, 'Town Hall'),
  // The prefix QQ is never assigned.
  NationalInsuranceNumber: ({ random }) => `QQ${digits(random, 6)}C`,
  // 999 is the range for tests.
  NHSNumber: ({ random }) => `999${digits(random, 7)}`,
  AdmissionNumber: ({ pupil }) => String(1000 + pupil.learner).padStart(6, '0'),
  UniquePupilNumber: ({ random }) => `Z${digits(random, 12)}`,
  UniqueLearnerNumber: ({ random }) => `9${digits(random, 9)}`,
  // 01632 960 is set aside for fiction.
  TelephoneNumber: ({ random }) => `01632 960${digits(random, 3)}`,
  EmailAddress: ({ contact, pupil }) => `contact${contact?.number ?? pupil.learner}@example.org`,
  BuildingNumber: ({ home }) => home.buildingNumber,
  Street: ({ home }) => home.street,
  Locality: () => null,
  Town: () => 'Markham',
  County: () => 'Northshire',
  PostCode: ({ home }) => home.postCode,
  Country: () => 'United Kingdom',
  PassportNumber: ({ random }) => digits(random, 9),
  NameOnPassport: ({ pupil }) => `${pupil.forename} ${pupil.surname}`,
  PlaceOfBirth: () => 'Markham',
  Destination: () => null,
  Priority: ({ index }) => index + 1,
  Rank: ({ index }) => index + 1,
  TenantID: () => 1,
  Amount: ({ random }) => 1000 + random.below(500) + 0.5,
  LastFSM: ({ random, year }) => dateOf(startOf(year) - random.below(600)),
  DateAwarded: recent(600),
  CodeNumber: ({ random }) => `500${digits(random, 8)}`,
  Summary: sometimes(0.8, 'Noted by the school office'),
  Note: sometimes(0.5, 'See the paper file.\nKept up to date.'),
  Notes: sometimes(0.4, 'Agreed with the family'),
  Comment: sometimes(0.4, 'Going well'),
  Comments: sometimes(0.4, 'Going well'),
  OutcomeComments: sometimes(0.5, 'Targets were met'),
  Subjects: () => 'Mathematics; English',
  QuickNote: sometimes(0.05, 'Collect from the side gate'),
  Description: sometimes(0.8, 'Support in class'),
  LearningStrategies: sometimes(0.15, 'Visual timetable, short tasks'),
  ConsentingAdult: ({ contacts }) =>
    contacts[0] === undefined ? null : `${contacts[0].forename} ${contacts[0].surname}`,
  EntityName: () => 'Staff',
  HasParentalResponsibility: share(0.95),
  ReceivesCorrespondance: share(0.9),
  ReceivesSchoolReport: share(0.9),
  IsFirstPointOfContact: ({ index }) => index === 0,
  IsMainEmail: ({ index }) => index === 0,
  IsMailingPoint: () => true,
  UseForAutomatedMessages: ({ index }) => index === 0,
  BirthCertificateSeen: share(0.9),
  ParentalBallot: share(0.9),
  Invited: () => true,
  Accepted: share(0.8),
  Attended: share(0.7),
  DeprivationPupil: share(0.9),
  EnglishAsAdditional: share(0.2),
}

function endOf(start: Json | undefined, random: Random): Json {
  if (typeof start !== 'string' || random.chance(0.6)) return null
  return dateOf(dayNumber(start) + 30 + random.below(400))
}

/** The rule for a field; undefined where only its type speaks. */
export function ruleFor(type: string, field: string): Rule | undefined {
  return byType[`${type}.${field}`] ?? byName[field]
}
