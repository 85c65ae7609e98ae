import { AdapterError } from '../../../src/errors.ts'
import { QueryError } from '../../../src/odata/index.ts'
import { watchTurns } from '../holds/measure-holds.ts'
import type { Reader } from './readers.ts'

/** The cost of one text: processor time of the longest turn of the event loop and of all turns, in milliseconds. */
export interface Cost {
  readonly longestMs: number
  readonly totalMs: number
}

/** Measures a reader in this thread. If the reader rejects a text, the time until then counts. */
export async function measure({ prepare }: Reader, text: string): Promise<Cost> {
  const read = prepare(text)
  // By now, the garbage collector has freed the memory used to build the text.
  await new Promise((resolve) => setImmediate(resolve))
  const take = watchTurns()
  try {
    await read()
  } catch (cause) {
    if (!(cause instanceof AdapterError) && !(cause instanceof QueryError)) throw cause
  }
  return take()
}

/** Returns the cost of eight times as much of a shape, as a multiple of the cost of the original. Linear readers return 8. */
export async function measureGrowth(
  reader: Reader,
  make: (size: number) => string,
  longest: number,
): Promise<number> {
  const [small, large] = [make(longest / 8), make(longest)]
  await measure(reader, small)
  const { totalMs } = await measure(reader, large)
  // Smaller costs are noise of the garbage collector or of the clock.
  if (totalMs < SHORT_MS) return 0
  const before = await measure(reader, small)
  return totalMs / Math.max(before.totalMs, SHORT_MS / 8)
}

const SHORT_MS = 8
