/** The link from a page to the next. Only its query counts: host and path may differ from those of the call (service-facts 14). */
type NextLink =
  | { readonly kind: 'none' }
  /** The query is raw and without `?`, and may be used in a request line. */
  | { readonly kind: 'next'; readonly query: string }
  /** `fault` completes a sentence about the reply and contains no value. */
  | { readonly kind: 'broken'; readonly fault: string }

/** The names in OData JSON 4.0 and 4.01 (with and without the prefix), the light JSON of OData 3, and OData V2. */
const names = ['@odata.nextLink', '@nextLink', 'odata.nextLink', '__next'] as const
/** Matches the name of any other member that may say that the page is not the last one. */
const OTHER = /next|more|continu|skiptoken/i

/** Reads the link to the next page. A link in an unknown form counts as broken, because ignoring it would omit rows. */
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

/** Returns the query of a link, or an empty string if the link has none. Percent-encodes characters that some services leave unencoded. */
function queryOf(link: string): string {
  const [, query = ''] = /\?([^#]*)/.exec(link.trim()) ?? []
  return query.toWellFormed().replace(/[^\x21-\x7e]/gu, encodeURIComponent)
}
