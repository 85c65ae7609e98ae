import type { FlatReply } from '../../v2/index.ts'
import type { RecordView } from '../attendance/record-entity.ts'
import { formatInstant } from '../dates.ts'

/** A record in the flat form of the legacy face (service.md 9.3). */
export function toFlatReply(view: RecordView): FlatReply {
  return {
    ExternalID: view.externalId,
    Present: view.present,
    Absent: view.absent,
    RecordedOn: view.recordedOn === null ? null : formatInstant(view.recordedOn),
    ChangeProcessName: view.changeProcessName,
    AttendableEventStart: view.start,
    RecordedBy: view.recordedBy,
    Learner: view.learner,
    AttendableEvent: view.event,
    SchoolAttendanceCode: view.code,
    MinutesLate: view.minutesLate,
    Comment: view.comment,
  }
}
