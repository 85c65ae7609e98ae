import type { V3Record, V3Reference } from './v3-record.ts'

/** Which members a write body has: all of service.md 2.10, or the published minimum (service-facts 6). */
export type BodyProfile = 'full' | 'minimal'

/** The JSON body of a V3 POST. Built by hand: it runs once for every mark, and the order of members is the service's. */
export function encodeRecord(record: V3Record, profile: BodyProfile): string {
  const { MinutesLate, Comment } = record.Qualifier
  const minutes = MinutesLate === undefined ? '' : `"MinutesLate":${MinutesLate}`
  const comment = Comment === undefined ? '' : `"Comment":${JSON.stringify(Comment)}`
  const references =
    `"Attendee":${encodeReference(record.Attendee)},"Event":${encodeReference(record.Event)}` +
    `,"AttendanceCode":${encodeReference(record.AttendanceCode)}` +
    `,"Qualifier":{${minutes}${minutes !== '' && comment !== '' ? ',' : ''}${comment}}}`
  if (profile === 'minimal') return `{${references}`
  const { RecordedBy } = record
  return (
    `{"ExternalID":"${record.ExternalID}","Present":${record.Present},"Absent":${record.Absent}` +
    member('RecordedOn', record.RecordedOn) +
    member('ChangeProcessName', record.ChangeProcessName) +
    member('AttendableEventStart', record.AttendableEventStart) +
    (RecordedBy === undefined
      ? ''
      : `,"RecordedBy":${RecordedBy === null ? 'null' : encodeReference(RecordedBy)}`) +
    `,${references}`
  )
}

function member(name: string, value: string | null | undefined): string {
  return value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`
}

// The id is a checked guid; the type comes from the configuration.
function encodeReference(reference: V3Reference): string {
  const type = reference.Type === undefined ? '' : `,"Type":${JSON.stringify(reference.Type)}`
  return `{"ExternalID":${JSON.stringify(reference.ExternalID)}${type}}`
}
