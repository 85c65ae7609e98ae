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

/**
 * True for a generic OData client, which needs the nested layout (batch-wire A6): it names an OData version, or accepts multipart/mixed, which
 * is all that the SAP Cloud SDK says. The request of service.md 4.2 has none of these headers. `headers` by their names in lower case.
 */
export function isGenericClient(headers: {
  readonly accept?: string | undefined
  readonly [name: string]: string | readonly string[] | undefined
}): boolean {
  return (
    headers['odata-version'] !== undefined ||
    headers['odata-maxversion'] !== undefined ||
    /\bmultipart\/mixed\b/i.test(headers.accept ?? '')
  )
}
