/** The limits of one V2 batch. All of them are checked while the batch is decoded (batch-wire F27). */
export interface BatchLimits {
  /** Maximum size of the body in bytes, after decompression. A larger body is refused with 413. Default: 32 MiB. */
  readonly maxBodyBytes: number
  /** Maximum number of records, and of changesets. A batch that exceeds either maximum is refused with 413. Default: 20,000. */
  readonly maxParts: number
  /** Maximum size of all headers of one part in bytes, MIME and HTTP. A batch above this limit is refused with 400. Default: 64 KiB. */
  readonly maxPartHeaderBytes: number
  /** Maximum number of lines in one block of headers of a part. A batch that exceeds this limit is refused with 400. Default: 100. */
  readonly maxHeaderLines: number
  /** Maximum number of spaces and tabs at the end of a delimiter line. A batch that exceeds this limit is refused with 400. Default: 256. */
  readonly maxBoundaryPadding: number
  /** Maximum size of the JSON of one record in bytes. A larger record gets 400 in its part. Default: 1 MiB. */
  readonly maxPartBytes: number
  /** Maximum number of members and array elements of one record, at all levels. A larger record gets 400 in its part. Default: 1,000. */
  readonly maxMembers: number
  /** Maximum number of backslash escapes in the strings of one record. A record with more escapes gets 400 in its part. Default: 65,536. */
  readonly maxEscapes: number
}

/** Disables all limits. Stored and recorded batches are decoded without limits, because other limits may have applied when they arrived. */
export const noBatchLimits: BatchLimits = {
  maxBodyBytes: Infinity,
  maxParts: Infinity,
  maxPartHeaderBytes: Infinity,
  maxHeaderLines: Infinity,
  maxBoundaryPadding: Infinity,
  maxPartBytes: Infinity,
  maxMembers: Infinity,
  maxEscapes: Infinity,
}

export const defaultBatchLimits: BatchLimits = {
  maxBodyBytes: 33_554_432,
  maxParts: 20_000,
  maxPartHeaderBytes: 65_536,
  maxHeaderLines: 100,
  maxBoundaryPadding: 256,
  maxPartBytes: 1_048_576,
  maxMembers: 1_000,
  maxEscapes: 65_536,
}
