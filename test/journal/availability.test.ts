import { expect, it } from 'vitest'

import { AdapterError } from '../../src/errors.ts'
import { createAvailability } from '../../src/journal/availability.ts'
import type { StoreError } from '../../src/journal/store-error.ts'
import { createManualClock } from '../support/manual-clock.ts'

/** Creates an availability monitor for a store that fails on demand. `said` collects the reports of the monitor. */
function start() {
  const clock = createManualClock()
  const said: (string | undefined)[] = []
  const toStoreError = (error: unknown): StoreError => error as StoreError
  const availability = createAvailability({ toStoreError }, clock, (failure) => said.push(failure))
  const ask = (fault: unknown): Promise<unknown> =>
    availability.ask(() => (fault === undefined ? Promise.resolve('answer') : Promise.reject(fault as Error)))
  return { availability, said, ask, clock }
}

const gone: StoreError = { kind: 'transient', message: 'the database cannot be reached' }

it('the availability monitor reports one failure and one recovery when the store is unreachable for a while', async () => {
  const { availability, said, ask } = start()
  for (const fault of [gone, { ...gone, message: 'another' }]) {
    await expect(ask(fault)).rejects.toMatchObject({
      code: 'ADP_JOURNAL_UNAVAILABLE',
      message: expect.stringContaining(fault.message) as unknown,
    })
    expect(availability.isAvailable()).toBe(false)
  }
  expect(await ask(undefined)).toBe('answer')
  expect(await ask(undefined)).toBe('answer')
  expect(availability.isAvailable()).toBe(true)
  expect(said).toEqual(['the database cannot be reached', undefined])
})

it('the availability monitor reports the recovery of a store that failed every second only after two seconds without a failure', async () => {
  const { availability, said, clock } = start()
  for (let second = 0; second < 60; second += 1) {
    availability.failed({ ...gone, message: 'the disk is full' }, 'commit')
    availability.reached('query')
    await clock.pass(500)
    availability.reached('commit')
    await clock.pass(500)
  }
  expect(said).toEqual(['the disk is full', undefined, 'the disk is full'])
  expect(availability.isAvailable()).toBe(false)
  await clock.pass(2_000)
  expect(said).toEqual(['the disk is full', undefined, 'the disk is full', undefined])
  expect(availability.isAvailable()).toBe(true)
})

it('the availability monitor reports damage only once before the next successful commit, even if the damage follows another failure', () => {
  const { availability, said } = start()
  const damaged: StoreError = { kind: 'damaged', message: 'it lost 3 commit(s)' }
  availability.failed(gone, 'query')
  expect(availability.isDamaged()).toBe(false)
  for (const fault of [damaged, gone, damaged]) availability.failed(fault, 'commit')
  availability.reached('query')
  expect([availability.isAvailable(), availability.isDamaged()]).toEqual([false, true])
  expect(said).toEqual([gone.message, damaged.message])
  availability.reached('commit')
  expect([availability.isAvailable(), availability.isDamaged()]).toEqual([true, false])
})

it('the availability monitor reports no recovery after a failed commit while queries succeed but no commit does', () => {
  const { availability, said } = start()
  availability.failed(gone, 'commit')
  availability.reached('query')
  expect([availability.isAvailable(), availability.needsCommit()]).toEqual([false, true])
  availability.reached('commit')
  expect([availability.isAvailable(), availability.needsCommit()]).toEqual([true, false])
  expect(said).toHaveLength(2)
})

it('the availability monitor throws ADP_JOURNAL_DAMAGED for a damaged store and ADP_INTERNAL for an internal error', async () => {
  const { availability, said, ask } = start()
  await expect(ask({ kind: 'damaged', message: 'its file was deleted' })).rejects.toMatchObject({
    code: 'ADP_JOURNAL_DAMAGED',
    status: 503,
  })
  await expect(ask({ kind: 'internal', message: 'internal error' })).rejects.toMatchObject({
    code: 'ADP_INTERNAL',
  })
  expect(said).toEqual(['its file was deleted'])
  expect(availability.isAvailable()).toBe(false)
})

it.each<[string, StoreError]>([
  ['a query fails because of contention with other transactions', { ...gone, contended: true }],
  ['the store refuses the data of one query', { ...gone, kind: 'refused' }],
])('the availability monitor still treats the store as available when %s', async (_what, fault) => {
  const { availability, said, ask } = start()
  await expect(ask(fault)).rejects.toMatchObject({ code: 'ADP_JOURNAL_UNAVAILABLE' })
  expect(availability.isAvailable()).toBe(true)
  expect(said).toEqual([])
})

it('the availability monitor rethrows a configuration error and still treats the store as available', async () => {
  const { availability, ask } = start()
  const missing = new AdapterError('ADP_CONFIGURATION', 'no key')
  await expect(ask(missing)).rejects.toBe(missing)
  expect(availability.isAvailable()).toBe(true)
})
