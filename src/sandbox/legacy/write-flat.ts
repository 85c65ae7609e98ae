import { encodeErrorArray, encodeFlatReply, envelopRecord } from '../../v2/index.ts'
import type { FlatRecord, MetadataLevel, RecordFault, V2Error } from '../../v2/index.ts'
import { writeMark } from '../attendance/write-mark.ts'
import { zeroGuid } from '../identity.ts'
import type { School } from '../school.ts'
import type { OnExisting } from '../store/marks.ts'
import { toFlatReply } from './flat-entity.ts'
import { readUnmapped } from './unmapped-fields.ts'
import type { UnmappedPolicy } from './unmapped-fields.ts'

/** The writer, and the treatment of existing marks. */
export interface FlatWriter {
  readonly school: School
  readonly onExisting: OnExisting
  readonly unmappedFields: UnmappedPolicy
  readonly actorId: string
  /** Context URL of a record. */
  readonly context: string
  /** Address of the records, for `Location`. */
  readonly recordsUrl: string
}

/** A record as a batch part or a single body gave it; exactly one of the two is there. */
export interface FlatReading {
  readonly record: FlatRecord | undefined
  readonly faults: readonly RecordFault[] | undefined
}

/** The answer to one record: its status, and JSON on one line. */
export interface FlatAnswer {
  readonly status: number
  readonly json: string
}

/** Codes of this service for faults that the codec found; `ATT_VAL_2` and `ATT_VAL_3` are those that service.md 7 shows. */
const faultCodes: Readonly<Record<RecordFault['code'], string>> = {
  ADP_JSON: 'INVALID_JSON',
  ADP_CHARSET: 'INVALID_CHARSET',
  ADP_FIELD: 'INVALID_FIELD',
  ADP_UNMAPPED_FIELD: 'UNKNOWN_FIELD',
  ADP_METHOD: 'METHOD_NOT_ALLOWED',
  ADP_RECORD_LIMIT: 'RECORD_TOO_LARGE',
}

const unknownIds: Readonly<Record<string, string>> = {
  ATT_VAL_1: 'The Learner of the record does not exist.',
  ATT_VAL_2: 'The AttendableEvent of the record does not exist.',
  ATT_VAL_3: 'The SchoolAttendanceCode of the record does not exist.',
}

/** Records one flat record, or answers with the array of everything that is wrong with it (service.md 7). */
export function writeFlat(
  writer: FlatWriter,
  { record, faults = [] }: FlatReading,
  metadata: MetadataLevel,
): FlatAnswer {
  const { school } = writer
  const { dataEnvelope, errorMessages } = school.legacyForm.current()
  const refuse = (status: number, errors: readonly V2Error[]): FlatAnswer => {
    const worded = errors.map((error) => ({ ...error, message: errorMessages[error.code] ?? error.message }))
    // One SequenceID for all errors of a record; which one does not matter, so the seed gives it.
    return { status, json: encodeErrorArray(worded, school.ids.guid('sequence', school.marks.lastSeq() + 1)) }
  }
  if (record === undefined) {
    const status = faults.some(({ code }) => code === 'ADP_METHOD') ? 405 : 400
    return refuse(
      status,
      faults.map(({ code, message }) => ({ code: faultCodes[code], message })),
    )
  }
  const passed = readUnmapped(record.unmapped ?? [], writer.unmappedFields)
  if (passed.errors.length > 0) return refuse(400, passed.errors)
  if (record.Present && record.Absent)
    return refuse(400, [{ code: 'INVALID_FIELD', message: 'A mark cannot be both Present and Absent.' }])
  const outcome = writeMark(school, 'V2', writer.onExisting, {
    externalId: zeroGuid,
    learner: record.Learner.toLowerCase(),
    event: record.AttendableEvent.toLowerCase(),
    code: record.SchoolAttendanceCode.toLowerCase(),
    present: record.Present,
    absent: record.Absent,
    minutesLate: record.MinutesLate ?? null,
    comment: record.Comment ?? null,
    recordedOn: passed.recordedOn,
    changeProcessName: passed.changeProcessName ?? null,
    recordedBy: passed.recordedBy ?? writer.actorId,
  })
  if (outcome.kind === 'written') {
    const json = encodeFlatReply(toFlatReply(outcome.view), writer.context, metadata)
    return { status: 201, json: dataEnvelope ? envelopRecord(json) : json }
  }
  if (outcome.kind === 'conflict') return refuse(409, [{ code: 'CONFLICT', message: outcome.message }])
  return refuse(
    400,
    outcome.faults.map(({ code, message }) => ({ code, message: unknownIds[code] ?? message })),
  )
}
