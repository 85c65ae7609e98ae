import { AdapterError } from '../../errors.ts'
import type { WindowQueries } from './queries.ts'
import type { ComparedSide } from './sides.ts'

/** All rows that a side has for a query, `tooMany`, or why it could not be read to its end. */
export type RowsRead =
  | { readonly kind: 'rows'; readonly rows: readonly object[] }
  | { readonly kind: 'tooMany' }
  | { readonly kind: 'failed'; readonly cause: AdapterError }

/** The rows of a query on both sides; `again`: those of a second read of V2, where noise is measured. */
export interface WindowRead {
  readonly v2: RowsRead
  readonly again: RowsRead | undefined
  readonly v3: RowsRead
}

/** One kind of record on both sides. */
export interface SidePair {
  readonly v2: ComparedSide
  readonly v3: ComparedSide
}

/** Reads a query of both sides at the same time, V2 twice for `noise`. Rejects as `readRows`. */
export async function readWindow(
  sides: SidePair,
  queries: WindowQueries,
  { noise, maxRows }: { readonly noise: boolean; readonly maxRows: number },
  signal: AbortSignal,
): Promise<WindowRead> {
  const readV2 = (): Promise<RowsRead> => readRows(sides.v2, queries.v2, maxRows, signal)
  const readTwice = async (): Promise<Pick<WindowRead, 'v2' | 'again'>> => {
    const v2 = await readV2()
    return { v2, again: noise && v2.kind === 'rows' ? await readV2() : undefined }
  }
  const [ofV2, v3] = await Promise.all([readTwice(), readRows(sides.v3, queries.v3, maxRows, signal)])
  return { ...ofV2, v3 }
}

/** Pages without a row, one after another, at most: a service may filter after it has cut its pages. */
const MAX_EMPTY_PAGES = 100

/**
 * Reads a query of one side page by page, to its end, or until it has more than `maxRows`. What the side does wrong is an
 * outcome; rejects only when `signal` aborts, and for a fault of the program.
 */
async function readRows(
  side: ComparedSide,
  query: string,
  maxRows: number,
  signal: AbortSignal,
): Promise<RowsRead> {
  const rows: object[] = []
  const followed = new Set<string>()
  let empty = 0
  try {
    for (let next: string | undefined = query; next !== undefined;) {
      if (followed.has(next)) throw endless('leads back to a page before it')
      followed.add(next)
      const page = await side.page(next, signal)
      signal.throwIfAborted()
      for (const row of page.rows) rows.push(row)
      empty = page.rows.length === 0 ? empty + 1 : 0
      if (empty > MAX_EMPTY_PAGES) throw endless('leads to pages without rows')
      if (rows.length > maxRows) return { kind: 'tooMany' }
      next = page.next
    }
    return { kind: 'rows', rows }
  } catch (cause) {
    signal.throwIfAborted()
    if (cause instanceof AdapterError) return { kind: 'failed', cause }
    throw cause
  }
}

function endless(fault: string): AdapterError {
  return new AdapterError('ADP_UPSTREAM_PROTOCOL', `The answer does not end: a next link ${fault}.`)
}
