import type { V3Record } from './v3-record.ts'

/** Which members a write body has: all of service.md 2.10, or the published minimum (service-facts 6). */
export type BodyProfile = 'full' | 'minimal'

/** The JSON body of a V3 POST; the members are in the service's order, whatever the order in the record. */
export function encodeRecord(record: V3Record, profile: BodyProfile): string {
  const { Attendee, Event, AttendanceCode, Qualifier } = record
  if (profile === 'minimal') return JSON.stringify({ Attendee, Event, AttendanceCode, Qualifier })
  const { ExternalID, Present, Absent, RecordedOn, ChangeProcessName, AttendableEventStart, RecordedBy } =
    record
  return JSON.stringify({
    ExternalID,
    Present,
    Absent,
    RecordedOn,
    ChangeProcessName,
    AttendableEventStart,
    RecordedBy,
    Attendee,
    Event,
    AttendanceCode,
    Qualifier,
  })
}
