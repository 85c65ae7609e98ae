import { AdapterError } from '../../errors.ts'
import type { ComparedSide } from './side.ts'

/** All rows that a side has for a query, `tooMany`, or why it could not be read to its end. */
export type RowsRead =
  | { readonly kind: 'rows'; readonly rows: readonly object[] }
  | { readonly kind: 'tooMany' }
  | { readonly kind: 'failed'; readonly cause: AdapterError }

/** Pages without a row, one after another, at most: a service may filter after it has cut its pages. */
const MAX_EMPTY_PAGES = 100

/**
 * Reads a query of one side page by page, to its end, or until it has more than `maxRows`. What the side does wrong is an
 * outcome; rejects only when `signal` aborts, and for a fault of the program.
 */
export async function readRows(
  side: ComparedSide,
  query: string,
  maxRows: number,
  signal: AbortSignal,
): Promise<RowsRead> {
  const pages: (readonly object[])[] = []
  const followed = new Set<string>()
  let count = 0
  let empty = 0
  try {
    for (let next: string | undefined = query; next !== undefined;) {
      if (followed.has(next)) throw endless('leads back to a page before it')
      followed.add(next)
      const page = await side.page(next, signal)
      signal.throwIfAborted()
      pages.push(page.rows)
      count += page.rows.length
      empty = page.rows.length === 0 ? empty + 1 : 0
      if (empty > MAX_EMPTY_PAGES) throw endless('leads to pages without rows')
      if (count > maxRows) return { kind: 'tooMany' }
      next = page.next
    }
    return { kind: 'rows', rows: pages.flat() }
  } catch (cause) {
    signal.throwIfAborted()
    if (cause instanceof AdapterError) return { kind: 'failed', cause }
    throw cause
  }
}

function endless(fault: string): AdapterError {
  return new AdapterError('ADP_UPSTREAM_PROTOCOL', `The answer does not end: a next link ${fault}.`)
}
