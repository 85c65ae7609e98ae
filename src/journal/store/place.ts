/** More than a batch has records: its body would be larger than any that is taken. */
const POSITIONS = 16_777_216

/** SQL for the place of a record in the order of all records, as one number; `record` is an alias of `journal_records`. */
export const placeOf = (record: string): string => `${record}.batch * ${POSITIONS} + ${record}.position`

/** SQL for batch and position of a place. Not done in JavaScript: a place may exceed what its numbers hold exactly. */
export const fromPlace = (place: string): { readonly batch: string; readonly position: string } => ({
  batch: `${place} / ${POSITIONS}`,
  position: `${place} % ${POSITIONS}`,
})
