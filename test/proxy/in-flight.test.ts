import { expect, test } from 'vitest'

import { createInFlight } from '../../src/proxy/in-flight.ts'

test('idle waits for every handler, also for one that fails', async () => {
  const inFlight = createInFlight()
  await inFlight.idle()
  const first = Promise.withResolvers<undefined>()
  const second = Promise.withResolvers<undefined>()
  const one = inFlight.run(() => first.promise)
  const two = inFlight.run(() => second.promise).catch((cause: unknown) => String(cause))
  expect(inFlight.count()).toBe(2)
  let idle = false
  const waiting = inFlight.idle().then(() => (idle = true))
  first.resolve(undefined)
  await one
  expect(idle).toBe(false)
  second.reject(new Error('no'))
  expect(await two).toBe('Error: no')
  await waiting
  expect([idle, inFlight.count()]).toEqual([true, 0])
})
