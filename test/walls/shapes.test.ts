import { expect, it } from 'vitest'

import { measureGrowth } from './shapes/measure-shapes.ts'
import { pageReaders, type Reader, readers } from './shapes/readers.ts'
import { shapes } from './shapes/shapes.ts'

/**
 * The length of the longest text of this test. `npm run test:walls -- --shapes` uses longer texts, and measures how long a turn of the
 * event loop takes.
 */
const LONGEST = 128 * 1_024
/** Eight times as much text costs a linear reader eight times as much, and 64 times as much if the reader starts again at each line. */
const MAX_GROWTH = 24
/** The maximum number of measurements. Several are needed because the garbage collector or a busy machine may lengthen any one of them. */
const TRIES = 16

async function growthOf(reader: Reader, make: (size: number) => string): Promise<number> {
  const longest = Math.min(LONGEST, reader.longest)
  let growth = await measureGrowth(reader, make, longest)
  for (let count = 1; count < TRIES && growth > MAX_GROWTH; count += 1)
    growth = Math.min(growth, await measureGrowth(reader, make, longest))
  return growth
}

it.each([...readers, ...(await pageReaders())])(
  'the time of the reader "$name" grows linearly with the length of the text, whatever its content',
  async (reader) => {
    const superlinear: string[] = []
    for (const [name, make] of shapes) if ((await growthOf(reader, make)) > MAX_GROWTH) superlinear.push(name)
    expect(superlinear).toEqual([])
  },
)
