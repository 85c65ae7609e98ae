/** One entry of the V2 error array, before it gets its SequenceID. */
export interface V2Error {
  /** `ATT_VAL_2` and `ATT_VAL_3` are the service's own; codes of the adapter begin `ADP_` (batch-wire 5). */
  readonly code: string
  readonly message: string
}

/**
 * The JSON of a failed record: an array of errors that share one SequenceID (service.md 7). `sequenceId` is a guid that is
 * new for each record; ResourceIdentifier is empty, as in every form that service.md shows.
 */
export function encodeErrorArray(errors: readonly V2Error[], sequenceId: string): string {
  return JSON.stringify(
    errors.map(({ code, message }) => ({
      Message: message,
      ErrorCode: code,
      ResourceIdentifier: '',
      SequenceID: sequenceId,
    })),
  )
}
