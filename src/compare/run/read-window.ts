import { readRows, type RowsRead } from './read-rows.ts'
import type { ComparedSide } from './side.ts'

/** The rows of a query on both sides; `again`: those of a second read of V2, where noise is measured. */
export interface WindowRead {
  readonly v2: RowsRead
  readonly again: RowsRead | undefined
  readonly v3: RowsRead
}

export interface ReadWindowOptions {
  readonly v2: ComparedSide
  readonly v3: ComparedSide
  /** True: V2 is read twice. */
  readonly noise: boolean
  readonly maxRows: number
}

/** The query of each side. */
export interface WindowQueries {
  readonly v2: string
  readonly v3: string
}

/** Reads a query of both sides at the same time. Rejects as `readRows`. */
export async function readWindow(
  { v2, v3, noise, maxRows }: ReadWindowOptions,
  queries: WindowQueries,
  signal: AbortSignal,
): Promise<WindowRead> {
  const readV2 = async (): Promise<Pick<WindowRead, 'v2' | 'again'>> => {
    const first = await readRows(v2, queries.v2, maxRows, signal)
    const isTwice = noise && first.kind === 'rows'
    return { v2: first, again: isTwice ? await readRows(v2, queries.v2, maxRows, signal) : undefined }
  }
  const [ofV2, ofV3] = await Promise.all([readV2(), readRows(v3, queries.v3, maxRows, signal)])
  return { ...ofV2, v3: ofV3 }
}
