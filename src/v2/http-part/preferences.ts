/** How the JSON of the reply is annotated, as the record asked in `Accept` (OData JSON 3.1). */
export type MetadataLevel = 'none' | 'minimal' | 'full'

/** How a record wants to be answered. */
export interface Preferences {
  /** `Prefer: return=minimal` (RFC 7240 4.2): 204 instead of 201. */
  readonly prefersMinimal: boolean
  readonly metadata: MetadataLevel
}

/** Reads the values of `Prefer` and `Accept`; several lines of one header are joined by commas, '' means none. */
export function readPreferences(prefer: string, accept: string): Preferences {
  // OData 4.01 leaves out the prefix `odata.`.
  const level = /(?<![.\w])(?:odata\.)?metadata\s*=\s*"?(none|minimal|full)\b/i
    .exec(accept)?.[1]
    ?.toLowerCase()
  return {
    prefersMinimal: /(^|[,;\s])return\s*=\s*"?minimal\b/i.test(prefer),
    metadata: level === 'none' || level === 'full' ? level : 'minimal',
  }
}
