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

/** One record as a decoder gave it out: its Content-ID and the JSON value of its body. */
export interface PostedRecord {
  readonly contentId: string | undefined
  readonly body: unknown
}

/** Count and checksum over the fields of service.md 4.2, in order: two decoders that agree have the same. */
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
