import type { ComplexType, EntityType } from '../odata/csdl.ts'
import { bool, collectionOf, datetimeoffset, entity, nav, ref, string, strings } from './notation.ts'
import { attachment, period, typedEntity, typedReference } from './shared.ts'

/** Medical domain, special category data (service.md 2.3). */
export const medicalEntityTypes: readonly EntityType[] = [
  entity('LearnerMedical', {
    NHSNumber: string,
    IsDisabled: bool,
    IsPregnant: bool,
    MedicalConditions: nav('LearnerMedicalCondition'),
    Disabilities: nav('LearnerDisability'),
    MedicalEvents: nav('LearnerMedicalEvent'),
    MedicalNotes: nav('LearnerMedicalNote'),
    LearnerParamedicalSupports: nav('LearnerParamedicalSupport'),
    MedicalProviders: nav('MedicalProviderRef'),
  }),
  entity('LearnerMedicalCondition', {
    InformationReceivedDate: datetimeoffset,
    EndDate: datetimeoffset,
    MedicalConditionNotes: collectionOf('LearnerMedicalConditionAttachment'),
    MedicalCondition: ref('MedicalConditionRef'),
    Summary: string,
  }),
  entity('LearnerDisability', { ...period, Notes: string, DisabilityType: ref('DisabilityTypeRef') }),
  entity('LearnerMedicalEvent', {
    EventDate: datetimeoffset,
    FollowUpDate: datetimeoffset,
    MedicalEventDescription: ref('MedicalEventDescriptionRef'),
    MedicalEventType: ref('MedicalEventTypeRef'),
    MedicalEventNotes: collectionOf('LearnerMedicalEventAttachment'),
  }),
  entity('LearnerMedicalNote', { Summary: string, Note: string, Confidential: bool, Attachments: strings }),
  entity('LearnerParamedicalSupport', { ParamedicalSupportType: ref('ParamedicalSupportTypeRef') }),
  typedEntity('MedicalProviderRef'),
]

export const medicalComplexTypes: readonly ComplexType[] = [
  typedReference('MedicalConditionRef'),
  typedReference('DisabilityTypeRef'),
  typedReference('MedicalEventDescriptionRef'),
  typedReference('MedicalEventTypeRef'),
  typedReference('ParamedicalSupportTypeRef'),
  attachment('LearnerMedicalConditionAttachment'),
  attachment('LearnerMedicalEventAttachment'),
]
