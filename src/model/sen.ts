import type { ComplexType, EntityType } from '../odata/csdl.ts'
import {
  bool,
  collectionOf,
  contained,
  datetimeoffset,
  duration,
  entity,
  guid,
  int32,
  nav,
  navOne,
  ref,
  required,
  string,
} from './notation.ts'
import { period, typedReference } from './shared.ts'

const needs: readonly EntityType[] = [
  entity('LearnerSEN', {
    LearningStrategies: string,
    SENGroupingAndSupport: ref('SENGroupingAndSupportRef'),
    SENCurriculumAndTeachingMethod: ref('SENCurriculumAndTeachingMethodRef'),
    SENAdviceAndAssessment: ref('SENAdviceAndAssessmentRef'),
    SENNeeds: nav('LearnerSENNeedTypes'),
    SENProvisions: nav('LearnerSENProvisionType'),
    SENStatuses: nav('LearnerSENStatus'),
    MostAbleSubjects: nav('LearnerMostAble'),
  }),
  entity('LearnerSENNeedTypes', {
    Notes: collectionOf('LearnerSENNeedTypeNote'),
    SENNeedType: ref('SENNeedTypeRef'),
    ...period,
    Description: string,
    Rank: int32,
  }),
  entity('LearnerSENProvisionType', {
    ...period,
    Comment: string,
    Notes: collectionOf('SENProvisionAttachment'),
    SENProvisionType: ref('SENProvisionTypeRef'),
  }),
  entity('LearnerSENStatus', { ...period, SENStatus: ref('SENStatusRef') }),
  entity('LearnerMostAble', {
    FromDate: datetimeoffset,
    ToDate: datetimeoffset,
    Notes: string,
    Subject: ref('Subject'),
  }),
]

/** The reviews of special educational needs. A caller also needs the security domain Learner.SEN.Review (service.md 1.1). */
const reviews: readonly EntityType[] = [
  entity('LearnerSENReview', { LearnerSENReviews: contained('LearnerSENReviewDetail') }),
  entity('LearnerSENReviewDetail', {
    VenueName: guid,
    LearnerConsultationDate: datetimeoffset,
    ParentsConsultationDate: datetimeoffset,
    OutcomeSENStatus: guid,
    OutcomeComments: string,
    ReviewStatus: guid,
    ReviewType: guid,
    StartDate: datetimeoffset,
    StartTime: duration,
    Venues: ref('Venue'),
    SENReviewParticipants: contained('SENReviewParticipant'),
  }),
  entity('SENReviewParticipant', {
    Accepted: bool,
    Attended: bool,
    Invited: bool,
    LearnerPersonInvolved: guid,
    SenPeopleInvolvedRelationship: guid,
    Date: datetimeoffset,
    LearnerPersonInvolvedInfo: ref('LearnerPersonInvolved'),
    SENPeopleInvolvedRelationship: navOne('SENPeopleInvolvedRelationship'),
  }),
  entity('SENPeopleInvolvedRelationship', {
    TenantID: required(int32),
    RoleID: guid,
    Code: string,
    Description: string,
    EntityName: string,
  }),
]

/** The education, health and care plans. A caller also needs the security domain Learner.SEN.EHCP (service.md 1.1). */
const plans: readonly EntityType[] = [
  entity('LearnerEHCP', { EHCPs: contained('EHCP') }),
  entity('EHCP', {
    DateRequestedforAssessment: datetimeoffset,
    ParentConsultationDate: datetimeoffset,
    Subjects: string,
    SubjectToAppealTribunal: bool,
    AppealNotes: string,
    DateFinalised: datetimeoffset,
    DateCeased: datetimeoffset,
    Comments: string,
    UndergoingSenMediation: bool,
    Learner: ref('Learner'),
    EHCPAssessmentOutcome: ref('EHCPAssessmentOutcomeRef'),
    EHCPAssessmentRequestStatus: ref('EHCPAssessmentRequestStatusRef'),
    LAOfficer: ref('LAOfficer'),
    Notes: collectionOf('EHCPNote'),
  }),
]

const events: readonly EntityType[] = [
  entity('LearnerSENEvent', { SENEvent: nav('SENEvent') }),
  entity('SENEvent', {
    Description: string,
    ...period,
    StartTime: duration,
    EndTime: duration,
    Notes: collectionOf('SENEventNote'),
    SENEventType: ref('SENEventTypeRef'),
  }),
  entity('LearnerSENStatement', { SENStatement: collectionOf('SENStatement') }),
]

/** The entity types of special educational needs, which are special category data (service.md 2.4). */
export const senEntityTypes: readonly EntityType[] = [...needs, ...reviews, ...plans, ...events]

export const senComplexTypes: readonly ComplexType[] = [
  typedReference('SENGroupingAndSupportRef'),
  typedReference('SENCurriculumAndTeachingMethodRef'),
  typedReference('SENAdviceAndAssessmentRef'),
]
