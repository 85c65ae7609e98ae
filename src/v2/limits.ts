/** The limits of one batch, all checked during parsing (batch-wire F27). */
export interface BatchLimits {
  /** Maximum bytes of the body after decompression. A larger body gets 413. Default 32 MiB. */
  readonly maxBodyBytes: number
  /** Maximum number of records, and also of changesets. A larger batch gets 413. Default 20,000. */
  readonly maxParts: number
  /** Maximum bytes of the MIME and HTTP headers of one part together. A batch beyond it gets 400. Default 64 KiB. */
  readonly maxPartHeaderBytes: number
  /** Maximum header lines of one part. A batch beyond it gets 400. Default 100. */
  readonly maxHeaderLines: number
  /** Maximum blanks after the boundary on a delimiter line. A batch beyond it gets 400. Default 256. */
  readonly maxBoundaryPadding: number
  /** Maximum bytes of the JSON of one record. A record beyond it gets 400 in its part. Default 1 MiB. */
  readonly maxPartBytes: number
  /** Maximum members and array elements of one record, nested ones included. A record beyond it gets 400 in its part. Default 1,000. */
  readonly maxMembers: number
  /** Maximum backslash escapes in the strings of one record. A record beyond it gets 400 in its part. Default 65,536. */
  readonly maxEscapes: number
}

/** No limits. Used to decode a stored batch, which may have been accepted under other limits. */
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
