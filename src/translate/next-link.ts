/**
 * The link from one page to the next. Only its query is used, because its host and path may differ from those of the call (service-facts
 * 14).
 */
type NextLink =
  | { readonly kind: 'none' }
  /** `query` is raw and without `?`, and may be used in a request line. */
  | { readonly kind: 'next'; readonly query: string }
  /** `fault` completes a sentence that begins with "The reply", and contains no value. */
  | { readonly kind: 'broken'; readonly fault: string }

/** The names of the link in OData JSON 4.0 and 4.01 (with and without the prefix), in the light JSON of OData 3, and in OData V2. */
const names = ['@odata.nextLink', '@nextLink', 'odata.nextLink', '__next'] as const
/** Matches names of other members that may announce further pages. */
const OTHER = /next|more|continu|skiptoken/i

/** Reads the link to the next page. A link in an unknown form counts as broken, because without the link rows would be missing. */
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

/** Returns the query of a link, or an empty string if it has no query. Percent-encodes characters that some services leave unencoded. */
function queryOf(link: string): string {
  const [, query = ''] = /\?([^#]*)/.exec(link.trim()) ?? []
  return query.toWellFormed().replace(/[^\x21-\x7e]/gu, encodeURIComponent)
}
