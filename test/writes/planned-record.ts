import type { PlannedRecord } from '../../src/writes/plan.ts'
import type { V3Record } from '../../src/v3/index.ts'
import { guid } from '../support/batch-request.ts'

export const answering = {
  contentId: '7',
  contentIdInHttp: false,
  changeset: 1,
  prefersMinimal: false,
  metadata: 'minimal',
} as const

export function nestedRecord(n: number): V3Record {
  return {
    ExternalID: guid(0),
    Present: true,
    Absent: false,
    RecordedOn: '2026-06-10T10:00:00Z',
    ChangeProcessName: 'Acme',
    AttendableEventStart: undefined,
    RecordedBy: undefined,
    Attendee: { ExternalID: guid(n) },
    Event: { ExternalID: guid(900) },
    AttendanceCode: { ExternalID: guid(800) },
    Qualifier: { MinutesLate: null, Comment: undefined },
  }
}

/** Returns a record of learner `n` that will be sent. */
export function plannedRecord(n: number, key = String(n)): PlannedRecord {
  return { answering, record: nestedRecord(n), faults: undefined, key }
}

/** A record that is refused before it is sent. */
export const refusedRecord: PlannedRecord = {
  answering,
  record: undefined,
  faults: [{ code: 'ADP_FIELD', message: 'Learner must be a guid.' }],
  key: '',
}
