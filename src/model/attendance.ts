import type { ComplexType, EntityType, FunctionDeclaration, ServiceModel } from '../odata/csdl.ts'
import { lookup } from './identity.ts'
import {
  bool,
  collectionOf,
  complex,
  datetimeoffset,
  entity,
  type Field,
  guid,
  int32,
  ref,
  serviceNamespace,
  string,
} from './notation.ts'
import { typedReference } from './shared.ts'

/** The complex types of attendance (service.md 2.10; service-facts 7). Their names are assumed. */
export const attendanceComplexTypes: readonly ComplexType[] = [
  typedReference('RecordedByRef'),
  typedReference('AttendeeRef'),
  typedReference('EventRef'),
  typedReference('AttendanceCodeRef'),
  typedReference('StatutoryAttendanceCodeRef'),
  complex('Qualifier', { MinutesLate: int32, Comment: string }),
]

/** Properties common to V2 and V3 records. */
const common = {
  Present: bool,
  Absent: bool,
  RecordedOn: datetimeoffset,
  ChangeProcessName: string,
  AttendableEventStart: datetimeoffset,
}

const mark = {
  ...common,
  RecordedBy: ref('RecordedByRef'),
  Attendee: ref('AttendeeRef'),
  Event: ref('EventRef'),
  AttendanceCode: ref('AttendanceCodeRef'),
  Qualifier: ref('Qualifier'),
}

/** A mark, or a session without a mark (service.md 2.10). The type of `fabricated` is assumed. */
const attendanceRecord: EntityType = entity('AttendanceRecord', {
  ...mark,
  fabricated: string,
})

/** One change of a mark (service-facts 4), which V2 shows in the AttendanceHistorys of the mark. The fields are assumed. */
const statutoryAttendanceRecordHistory: EntityType = entity('StatutoryAttendanceRecordHistory', {
  AttendanceRecord: guid,
  ...mark,
})

/** A morning or afternoon session. A client needs its id to write a mark (service-facts 4). The fields are assumed. */
const statutoryAttendanceSession: EntityType = entity('StatutoryAttendanceSession', {
  Description: string,
  Session: string,
  Start: datetimeoffset,
  End: datetimeoffset,
  Type: string,
})

/** An attendance code (service-facts 7), with `LookupType` `AttendanceCode`. The name of the type is assumed. */
const attendanceLookup: EntityType = lookup('AttendanceLookup', {
  StatutoryAttendanceCode: ref('StatutoryAttendanceCodeRef'),
})

export const attendanceEntityTypes: readonly EntityType[] = [
  attendanceRecord,
  statutoryAttendanceRecordHistory,
  statutoryAttendanceSession,
  attendanceLookup,
]

const changes = (entityType: string): FunctionDeclaration => ({
  name: 'Changes',
  bound: true,
  parameters: [
    { name: 'bindingParameter', type: entityType, collection: true, nullable: false },
    { name: 'startDate', type: 'Edm.DateTimeOffset', collection: false, nullable: false },
  ],
  returns: { type: entityType, collection: true, nullable: false },
})

/** The function `…/SIMS.Changes(startDate=…)`, which returns the changes since a date (service-facts 4). */
export const attendanceFunctions: readonly FunctionDeclaration[] = [
  changes(`${serviceNamespace}.AttendanceRecord`),
  changes(`${serviceNamespace}.StatutoryAttendanceRecordHistory`),
]

const legacyNamespace = 'AttendanceService.Models.OData'

const flatFields: Readonly<Record<string, Field>> = {
  ...common,
  RecordedBy: guid,
  Learner: guid,
  AttendableEvent: guid,
  SchoolAttendanceCode: guid,
  MinutesLate: int32,
  Comment: string,
}

/** The model of V2, whose attendance set has flat records (service.md 2.10 and 9.3). The fields of the history items are assumed. */
export const attendanceV2Model: ServiceModel = {
  schemas: [
    {
      namespace: legacyNamespace,
      enumTypes: [],
      complexTypes: [complex('AttendanceHistory', { ExternalID: guid, ...flatFields })],
      entityTypes: [
        entity('AttendanceRecord', {
          ...flatFields,
          AttendanceHistorys: collectionOf(`${legacyNamespace}.AttendanceHistory`),
        }),
      ],
      functions: [],
    },
  ],
  container: {
    namespace: legacyNamespace,
    name: 'Container',
    entitySets: [{ name: 'AttendanceRecords', entityType: `${legacyNamespace}.AttendanceRecord` }],
  },
}
