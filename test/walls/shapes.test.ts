import { expect, it } from 'vitest'

import { measureGrowth } from './shapes/measure-shapes.ts'
import { pageReaders, type Reader, readers } from './shapes/readers.ts'
import { shapes } from './shapes/shapes.ts'

/** `npm run test:walls -- --shapes` has the longest texts, and measures how long a turn of the event loop takes. */
const LONGEST = 128 * 1_024
/** Eight times as much of a text costs eight times as much of a linear reader, and 64 times of one that begins anew for each line. */
const MAX_GROWTH = 24
/** The collector of garbage may lengthen one. */
const TRIES = 4

async function growthOf(reader: Reader, make: (size: number) => string): Promise<number> {
  const longest = Math.min(LONGEST, reader.longest)
  let growth = await measureGrowth(reader, make, longest)
  for (let count = 1; count < TRIES && growth > MAX_GROWTH; count += 1)
    growth = Math.min(growth, await measureGrowth(reader, make, longest))
  return growth
}

it.each([...readers, ...(await pageReaders())])(
  'costs time that grows with the length of the text, whatever its shape: $name',
  async (reader) => {
    const superlinear: string[] = []
    for (const [name, make] of shapes) if ((await growthOf(reader, make)) > MAX_GROWTH) superlinear.push(name)
    expect(superlinear).toEqual([])
  },
)
