import { AdapterError } from '../../../src/errors.ts'
import { QueryError } from '../../../src/odata/index.ts'
import { watchTurns } from '../holds/measure-holds.ts'
import type { Reader } from './readers.ts'

/** What a reader took for one text: processor time of its longest turn of the event loop and of all turns, ms. */
export interface Cost {
  readonly longestMs: number
  readonly totalMs: number
}

/** Measures a reader in this thread; a text that is refused counts until then. */
export async function measure({ prepare }: Reader, text: string): Promise<Cost> {
  const read = prepare(text)
  // The collector has done with what made the text.
  await new Promise((resolve) => setImmediate(resolve))
  const take = watchTurns()
  try {
    await read()
  } catch (cause) {
    if (!(cause instanceof AdapterError) && !(cause instanceof QueryError)) throw cause
  }
  return take()
}

/** What eight times as much of a shape costs, as a multiple of what once as much costs; linear readers take 8. */
export async function measureGrowth(
  reader: Reader,
  make: (size: number) => string,
  longest: number,
): Promise<number> {
  const [small, large] = [make(longest / 8), make(longest)]
  await measure(reader, small)
  const { totalMs } = await measure(reader, large)
  // Less is the collector's, or the clock's.
  if (totalMs < SHORT_MS) return 0
  const before = await measure(reader, small)
  return totalMs / Math.max(before.totalMs, SHORT_MS / 8)
}

const SHORT_MS = 8
