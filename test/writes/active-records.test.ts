import { expect, it } from 'vitest'

import { createActiveRecords } from '../../src/writes/index.ts'

it('gives a record to one run at a time, and to the next once its outcome is durable', () => {
  const active = createActiveRecords()
  const first = active.claim(1, [0, 1, 1], 7)
  const second = active.claim(1, [1, 2], 7)
  expect([first.has(1), second.has(1), second.has(2)]).toEqual([true, false, true])
  // What is not its own is not given back.
  second.release([1])
  expect(active.claim(1, [1], 7).has(1)).toBe(false)
  first.release([1])
  const third = active.claim(1, [1], 7)
  expect([third.has(1), active.has(1)]).toEqual([true, true])
  for (const claim of [first, second, third]) claim.end()
  expect(active.has(1)).toBe(false)
})

it('ends the waits of runs under other leases alone, and of none that does not wait', async () => {
  const active = createActiveRecords()
  const [lost, kept] = [active.claim(1, [0], 7), active.claim(2, [0], 8)]
  active.claim(3, [0], 7)
  let ended = 0
  void kept.lost().then(() => (ended += 1))
  const waiting = lost.lost()
  active.keepOnly(8)
  expect(await waiting).toBe(false)
  expect(ended).toBe(0)
})
