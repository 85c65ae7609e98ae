import type { PartnerConfig } from '../config/index.ts'
import type { RecordMapping } from '../translate/index.ts'

/** A partner's choices for V3 records. */
export function toMapping({ v3, changeProcessName, unmappedFields }: PartnerConfig): RecordMapping {
  const { eventType, codeType } = v3
  return { eventType, codeType, changeProcessName, unmappedFields }
}
