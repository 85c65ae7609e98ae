/** `error`: the batch or a record of it is refused; `warning`: something surprises; `note`: accepted, but worth to know. */
export type Severity = 'error' | 'warning' | 'note'

/** Something that a sender of batches should know, with what to do. No value of a record is in it. */
export interface Finding {
  readonly severity: Severity
  /** Stable name for programs: an error code, or a word such as `bareLf`. */
  readonly code: string
  readonly message: string
  readonly remedy: string
  /** Byte offset from 0, where known. */
  readonly offset?: number
  /** Position of the record from 1, where known. */
  readonly part?: number
}
