const GUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i

/**
 * The id rule (service.md 4.2, last paragraph; batch-wire 3): the header's boundary is one of the delimiters of the body,
 * or its guid is the guid of the batch or of a changeset.
 */
export function idsAgree(headerBoundary: string, delimiters: readonly string[]): boolean {
  const id = guidOf(headerBoundary)
  return delimiters.some((own) => own === headerBoundary || (id !== undefined && guidOf(own) === id))
}

function guidOf(boundary: string): string | undefined {
  return GUID.exec(boundary)?.[0].toLowerCase()
}
