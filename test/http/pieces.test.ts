import * as fc from 'fast-check'
import { expect, it } from 'vitest'

import { Pieces } from '../../src/http/pieces.ts'
import { createSlicing } from '../../src/http/slices.ts'

const chunks = fc.array(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  { maxLength: 600 },
)

it('joins the bytes as they came', async () => {
  await fc.assert(
    fc.asyncProperty(chunks, async (all) => {
      const pieces = new Pieces()
      for (const chunk of all) pieces.add(chunk)
      const whole = Buffer.concat(all)
      expect(pieces.size).toBe(whole.length)
      expect(pieces.join().equals(whole)).toBe(true)
      expect((await pieces.joinInSlices(createSlicing().open())).equals(whole)).toBe(true)
    }),
  )
})
