import { expect, it } from 'vitest'

import { createInFlight } from '../../src/proxy/context.ts'

it('counts the requests that are being handled, and says when none is', async () => {
  const inFlight = createInFlight()
  await inFlight.idle()
  const leaveFirst = inFlight.enter()
  const leaveSecond = inFlight.enter()
  expect(inFlight.count()).toBe(2)
  let idle = false
  const waiting = inFlight.idle().then(() => (idle = true))
  leaveFirst()
  await Promise.resolve()
  expect([idle, inFlight.count()]).toEqual([false, 1])
  leaveSecond()
  await waiting
  expect([idle, inFlight.count()]).toEqual([true, 0])
})
