import {
  type Constructable,
  defaultDeSerializers,
  type DefaultDeSerializers,
  Entity,
  type EntityApi,
  entityBuilder,
  type EntityBuilderType,
  FieldBuilder,
  CreateRequestBuilder,
  CustomField,
  GetAllRequestBuilder,
  RequestBuilder,
} from '@sap-cloud-sdk/odata-v4'

/** The path of the V2 service below the URL of the destination. */
export const servicePath = '/sp-api-write-back-partner-live/V2/Attendance'

/** An attendance record, declared as the generator of the SAP Cloud SDK declares entities. */
export class AttendanceRecord extends Entity {
  static override _entityName = 'AttendanceRecords'
  static override _defaultBasePath = servicePath
  static _keys = ['ExternalID']
  declare externalId: string
  declare present: boolean
  declare absent: boolean
  declare learner: string
  declare attendableEvent: string
  declare schoolAttendanceCode: string
  declare minutesLate: number | null
  declare comment: string | null
}

class AttendanceRequestBuilder extends RequestBuilder<AttendanceRecord, DefaultDeSerializers> {
  getAll(): GetAllRequestBuilder<AttendanceRecord> {
    return new GetAllRequestBuilder(this.entityApi)
  }
  create(entity: AttendanceRecord): CreateRequestBuilder<AttendanceRecord> {
    return new CreateRequestBuilder(this.entityApi, entity)
  }
}

/** The API of the entity, as the generator emits it for each entity. */
export class AttendanceRecordApi implements EntityApi<AttendanceRecord, DefaultDeSerializers> {
  readonly deSerializers: DefaultDeSerializers = defaultDeSerializers
  readonly entityConstructor: Constructable<AttendanceRecord> = AttendanceRecord
  readonly schema: ReturnType<typeof fieldsOf> = fieldsOf(this.deSerializers)

  requestBuilder(): AttendanceRequestBuilder {
    return new AttendanceRequestBuilder(this)
  }
  entityBuilder(): EntityBuilderType<AttendanceRecord, DefaultDeSerializers> {
    return entityBuilder<AttendanceRecord, DefaultDeSerializers>(this)
  }
  customField<Nullable extends boolean>(
    name: string,
  ): CustomField<AttendanceRecord, DefaultDeSerializers, Nullable> {
    return new CustomField(name, this.entityConstructor, this.deSerializers)
  }
}

function fieldsOf(deSerializers: DefaultDeSerializers) {
  const fields = new FieldBuilder(AttendanceRecord, deSerializers)
  return {
    EXTERNAL_ID: fields.buildEdmTypeField('ExternalID', 'Edm.Guid', false),
    PRESENT: fields.buildEdmTypeField('Present', 'Edm.Boolean', false),
    ABSENT: fields.buildEdmTypeField('Absent', 'Edm.Boolean', false),
    LEARNER: fields.buildEdmTypeField('Learner', 'Edm.Guid', false),
    ATTENDABLE_EVENT: fields.buildEdmTypeField('AttendableEvent', 'Edm.Guid', false),
    SCHOOL_ATTENDANCE_CODE: fields.buildEdmTypeField('SchoolAttendanceCode', 'Edm.Guid', false),
    MINUTES_LATE: fields.buildEdmTypeField('MinutesLate', 'Edm.Int32', true),
    COMMENT: fields.buildEdmTypeField('Comment', 'Edm.String', true),
  }
}
