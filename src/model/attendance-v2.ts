import type { ServiceModel } from '../odata/csdl.ts'
import {
  bool,
  collectionOf,
  complex,
  datetimeoffset,
  entity,
  guid,
  int32,
  string,
  type Field,
} from './notation.ts'

const namespace = 'AttendanceService.Models.OData'

const flatFields: Readonly<Record<string, Field>> = {
  Present: bool,
  Absent: bool,
  RecordedOn: datetimeoffset,
  ChangeProcessName: string,
  AttendableEventStart: datetimeoffset,
  RecordedBy: guid,
  Learner: guid,
  AttendableEvent: guid,
  SchoolAttendanceCode: guid,
  MinutesLate: int32,
  Comment: string,
}

/**
 * The obsolete V2 attendance set: flat records, ids as guids (service.md 2.10 and 9.3). Its history items are only
 * named there, so their shape is assumed to be that of an earlier state of the mark.
 */
export const attendanceV2Model: ServiceModel = {
  schemas: [
    {
      namespace,
      enumTypes: [],
      complexTypes: [complex('AttendanceHistory', { ExternalID: guid, ...flatFields })],
      entityTypes: [
        entity('AttendanceRecord', {
          ...flatFields,
          AttendanceHistorys: collectionOf(`${namespace}.AttendanceHistory`),
        }),
      ],
      functions: [],
    },
  ],
  container: {
    namespace,
    name: 'Container',
    entitySets: [{ name: 'AttendanceRecords', entityType: `${namespace}.AttendanceRecord` }],
  },
}
