/** The link of a page to the next one. Of a link only the query counts: its host and path may be others than those that were called (service-facts 14). */
type NextLink =
  | { readonly kind: 'none' }
  /** `query` is raw and without `?`, and may go into a request line. */
  | { readonly kind: 'next'; readonly query: string }
  /** `fault` completes a sentence about the answer, without a value. */
  | { readonly kind: 'broken'; readonly fault: string }

/** OData JSON 4.0 and 4.01 (with and without the prefix), the light JSON of OData 3, and OData V2. */
const names = ['@odata.nextLink', '@nextLink', 'odata.nextLink', '__next'] as const
/** A member of a page that says in another way that the page is not the last one. */
const OTHER = /next|more|continu|skiptoken/i

/**
 * Reads the next link of a page. A page that points to more rows in a form that is not known has a broken link: to take it for the last page
 * would leave rows out.
 */
export function readNextLink(page: Readonly<Record<string, unknown>>): NextLink {
  const links = new Set(names.map((name) => page[name] ?? undefined))
  links.delete(undefined)
  const [link, other] = links
  if (other !== undefined) return { kind: 'broken', fault: 'has two next links' }
  if (link === undefined) {
    const isOpen = Object.keys(page).some((name) => OTHER.test(name) && Boolean(page[name]))
    return isOpen
      ? { kind: 'broken', fault: 'has a link to more rows in a form that is not known' }
      : { kind: 'none' }
  }
  const query = typeof link === 'string' ? queryOf(link) : ''
  return query === '' ? { kind: 'broken', fault: 'has a next link without a query' } : { kind: 'next', query }
}

/** Returns the query of a link. Blanks and characters beyond ASCII, which some services write as they are, are percent-encoded. */
function queryOf(link: string): string {
  const [, query = ''] = /\?([^#]*)/.exec(link.trim()) ?? []
  return query.toWellFormed().replace(/[^\x21-\x7e]/gu, encodeURIComponent)
}
