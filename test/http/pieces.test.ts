import * as fc from 'fast-check'
import { expect, it } from 'vitest'

import { Pieces } from '../../src/http/pieces.ts'
import { createSlicing } from '../../src/http/slices.ts'

const chunks = fc.array(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  { maxLength: 600 },
)

it('joins the bytes as they came, whether all, some or none of them fit into the given buffer', async () => {
  await fc.assert(
    fc.asyncProperty(chunks, fc.option(fc.nat({ max: 20_000 })), async (all, room) => {
      const pieces = new Pieces(room === null ? undefined : Buffer.alloc(room, 0xff))
      for (const chunk of all) pieces.add(chunk)
      const whole = Buffer.concat(all)
      expect(pieces.size).toBe(whole.length)
      expect(pieces.join().equals(whole)).toBe(true)
      expect((await pieces.joinInSlices(createSlicing().open())).equals(whole)).toBe(true)
    }),
  )
})

it('keeps nothing of a chunk that fits', () => {
  const pieces = new Pieces(Buffer.alloc(8))
  const chunk = Buffer.from('mark')
  pieces.add(chunk)
  chunk.fill(0)
  pieces.add(Buffer.from('s'))
  expect(pieces.join().toString()).toBe('marks')
})
