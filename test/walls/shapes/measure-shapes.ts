import { AdapterError } from '../../../src/errors.ts'
import { QueryError } from '../../../src/odata/index.ts'
import { watchTurns } from '../holds/measure-holds.ts'
import type { Reader } from './readers.ts'

/** The cost of one text: processor time of the longest turn of the event loop and of all turns, in milliseconds. */
export interface Cost {
  readonly longestMs: number
  readonly totalMs: number
}

/** Measures a reader in this thread. If the reader rejects the text, the time up to the rejection counts. */
export async function measure({ prepare }: Reader, text: string): Promise<Cost> {
  const read = prepare(text)
  // Building the text leaves garbage. A new turn of the event loop lets the garbage collector run before the measurement.
  await new Promise((resolve) => setImmediate(resolve))
  const take = watchTurns()
  try {
    await read()
  } catch (cause) {
    if (!(cause instanceof AdapterError) && !(cause instanceof QueryError)) throw cause
  }
  return take()
}

/** Returns how many times the cost grows when the text becomes eight times as long. The result is 8 for a linear reader. */
export async function measureGrowth(
  reader: Reader,
  make: (size: number) => string,
  longest: number,
): Promise<number> {
  const [small, large] = [make(longest / 8), make(longest)]
  await measure(reader, small)
  const { totalMs } = await measure(reader, large)
  // Smaller costs are noise of the garbage collector and of the clock.
  if (totalMs < SHORT_MS) return 0
  const before = await measure(reader, small)
  return totalMs / Math.max(before.totalMs, SHORT_MS / 8)
}

const SHORT_MS = 8
