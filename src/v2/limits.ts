/** The limits of one batch, all checked while parsing (batch-wire F27). */
export interface BatchLimits {
  /** Bytes of the body after decompression; over it 413. Default 32 MiB. */
  readonly maxBodyBytes: number
  /** Records, and likewise changesets, in one batch; over it 413. Default 20,000. */
  readonly maxParts: number
  /** Bytes of the MIME and HTTP headers of one part together; over it 400. Default 64 KiB. */
  readonly maxPartHeaderBytes: number
  /** Header lines of one part; over it 400. Default 100. */
  readonly maxHeaderLines: number
  /** Blanks after the boundary on a delimiter line; over it 400. Default 256. */
  readonly maxBoundaryPadding: number
  /** Bytes of the JSON of one record; over it the record's part is 400. Default 1 MiB. */
  readonly maxPartBytes: number
  /** Members and array elements of one record, those of nested values included; over it its part is 400. Default 1,000. */
  readonly maxMembers: number
  /** Backslash escapes in the strings of one record; over it its part is 400. Default 65,536. */
  readonly maxEscapes: number
}

/** No limits, for a batch that was accepted before under other limits. */
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
