/**
 * One record in the `d` of OData V2 (quirk `dataEnvelope`): clients of the time of datajs read only `d`. `json` is
 * the text of the record, which stays as it is inside. Errors are never enveloped: OData V2 has none around them either.
 */
export function envelopRecord(json: string): string {
  return `{"d":${json}}`
}
