import { createHash } from 'node:crypto'

import * as z from 'zod'

const recordSchema = z.object({
  Present: z.boolean(),
  Absent: z.boolean(),
  Learner: z.string(),
  AttendableEvent: z.string(),
  SchoolAttendanceCode: z.string(),
  MinutesLate: z.number().nullish(),
  Comment: z.string().nullish(),
})

/** A decoded record: its Content-ID and the JSON value of its body. */
export interface PostedRecord {
  readonly contentId: string | undefined
  readonly body: unknown
}

/** Returns the number of the records and a hash of their fields (service.md 4.2). Equal records in equal order give equal texts. */
export function checksum(records: readonly PostedRecord[]): string {
  const hash = createHash('sha256')
  for (const { contentId, body } of records) {
    const record = recordSchema.parse(body)
    hash.update(
      JSON.stringify([
        contentId,
        record.Present,
        record.Absent,
        record.Learner,
        record.AttendableEvent,
        record.SchoolAttendanceCode,
        record.MinutesLate,
        record.Comment,
      ]),
    )
  }
  return `${records.length} records, sha256 ${hash.digest('hex').slice(0, 16)}`
}
