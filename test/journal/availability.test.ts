import { expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createAvailability } from '../../src/journal/store/availability.ts'
import type { Fault } from '../../src/journal/store/fault.ts'

/** An availability whose store fails as told, and what it said of itself. */
function start() {
  const said: (string | undefined)[] = []
  const toFault = (error: unknown): Fault => error as Fault
  const availability = createAvailability({ toFault }, (failure) => said.push(failure))
  const ask = (fault: unknown): Promise<unknown> =>
    availability.ask(() => (fault === undefined ? Promise.resolve('answer') : Promise.reject(fault as Error)))
  return { availability, said, ask }
}

const gone: Fault = { kind: 'transient', message: 'the database cannot be reached' }

it('tells once that the store is gone, and once that it is back', async () => {
  const { availability, said, ask } = start()
  for (const fault of [gone, { ...gone, message: 'another' }]) {
    await expect(ask(fault)).rejects.toMatchObject({
      code: 'ADP_JOURNAL_UNAVAILABLE',
      message: `The journal cannot be read: ${fault.message}.`,
    })
    expect(availability.isAvailable()).toBe(false)
  }
  expect(await ask(undefined)).toBe('answer')
  expect(await ask(undefined)).toBe('answer')
  expect(availability.isAvailable()).toBe(true)
  expect(said).toEqual(['the database cannot be reached', undefined])
})

it.each<[string, Fault]>([
  ['others are in the way', { ...gone, contended: true }],
  ['the data cannot be stored', { ...gone, kind: 'refused' }],
])('does not take the store for gone when %s', async (_what, fault) => {
  const { availability, said, ask } = start()
  await expect(ask(fault)).rejects.toMatchObject({ code: 'ADP_JOURNAL_UNAVAILABLE' })
  expect(availability.isAvailable()).toBe(true)
  expect(said).toEqual([])
})

it('hands on what is wrong with the configuration', async () => {
  const { availability, ask } = start()
  const missing = new AdapterError('ADP_CONFIGURATION', 'no key')
  await expect(ask(missing)).rejects.toBe(missing)
  expect(availability.isAvailable()).toBe(true)
})
