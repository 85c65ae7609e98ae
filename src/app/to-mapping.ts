import type { PartnerConfig } from '../config/index.ts'
import type { RecordMapping } from '../translate/index.ts'

/** A partner's choices for V3 records. */
export function toMapping({ v3, changeProcessName, unmappedFields }: PartnerConfig): RecordMapping {
  const { attendeeType, eventType, codeType } = v3
  return { attendeeType, eventType, codeType, changeProcessName, unmappedFields }
}
