/** `error`: the batch or a record of it is refused; `warning`: something surprises; `note`: accepted, but worth to know. */
export type Severity = 'error' | 'warning' | 'note'

/** A finding about a batch, with a remedy. It never contains a value of a record. */
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
