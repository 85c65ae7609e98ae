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
