import type { EntityType } from '../odata/csdl.ts'
import { bool, contained, datetimeoffset, entity, int32, nav, ref, string } from './notation.ts'
import { period } from './shared.ts'

const registration: readonly EntityType[] = [
  entity('LearnerRegistration', {
    AdmissionNumber: string,
    UniquePupilNumber: string,
    UniqueLearnerNumber: string,
    LocalUPN: string,
    IsEducatedAtAnotherSiteButNotInASchool: bool,
    Enrolments: nav('LearnerEnrolment'),
    BoarderStatuses: nav('LearnerBoarderStatus'),
    PartTimeRecords: nav('LearnerPartTimeRecord'),
    UPNHistory: nav('LearnerUPNHistory'),
  }),
  entity('LearnerEnrolment', {
    DateOfAdmission: datetimeoffset,
    // The service misspells this name.
    DateOfLeaviing: datetimeoffset,
    Destination: string,
    DestinationStartDate: datetimeoffset,
    ReasonForLeaving: ref('ReasonForLeavingRef'),
    GroundsForRemoval: ref('GroundsForRemovalRef'),
    DestinationEstablishment: ref('DestinationEstablishment'),
    EnrolmentStatuses: contained('LearnerEnrolmentStatus'),
  }),
  entity('LearnerEnrolmentStatus', { ...period, EnrolmentStatus: ref('EnrolmentStatusRefObj') }),
  entity('LearnerBoarderStatus', { BoarderStatus: ref('BoarderStatusRef'), ...period }),
  entity('LearnerPartTimeRecord', { ...period }),
  entity('LearnerUPNHistory', { UniquePupilNumber: string, EndDate: datetimeoffset }),
]

const transport: readonly EntityType[] = [
  entity('LearnerTransport', {
    ModeOfTravel: ref('ModeOfTravelRef'),
    TravelRoute: ref('TravelRouteRef'),
    LAProvidesTransport: bool,
  }),
]

const history: readonly EntityType[] = [
  entity('LearnerSchoolHistory', {
    RegisteredSureStart: ref('RegisteredSureStartRef'),
    AttendedSureStart: ref('AttendedSureStartRef'),
    PreSchoolExperience: ref('PreSchoolExperienceRef'),
    PreviousSchools: nav('PreviousSchool'),
  }),
  entity('PreviousSchool', {
    ...period,
    EnrolmentStatus: ref('EnrolmentStatusRef'),
    ReasonForLeaving: ref('ReasonForLeavingRefObj'),
    School: ref('School'),
    AttendanceSummaries: nav('AttendanceSummary'),
  }),
  entity('AttendanceSummary', {
    PossibleSessions: int32,
    AttendanceSessions: int32,
    AuthorisedSessions: int32,
    UnauthorisedSessions: int32,
    Year: string,
  }),
]

/** Registration, transport and school history (service.md 2.9). */
export const registrationEntityTypes: readonly EntityType[] = [...registration, ...transport, ...history]
