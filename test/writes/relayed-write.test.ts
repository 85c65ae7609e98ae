import { expect, it } from 'vitest'

import type { BeginResult } from '../../src/journal/index.ts'
import { createSlicing } from '../../src/http/slices.ts'
import type { Client } from '../../src/partners/partner.ts'
import type { WriteContext } from '../../src/writes/context.ts'
import type { PlannedRequest } from '../../src/writes/plan.ts'
import { beginRelayed } from '../../src/writes/relayed-write.ts'
import { createManualClock } from '../support/manual-clock.ts'

const batch = (kind: 'known' | 'new') => ({ kind, batch: 7, lease: 1 }) as unknown as BeginResult

/**
 * Begins a write with a journal that answers after `answerMs`. The request to V2 waits for the journal for at most one second unless
 * `isSlow` returns true. Returns the outcome and its time.
 */
async function begin(answerMs: number, isSlow?: (nowMs: number) => boolean): Promise<string> {
  const clock = createManualClock()
  const context = {
    clock,
    upstream: 'https://v3.test',
    newId: () => 'id',
    active: { claim: () => ({ lost: () => new Promise(() => undefined), end: () => undefined }) },
    journal: {
      begin: () => new Promise((resolve) => void clock.after(answerMs, () => resolve(batch('known')))),
    },
    accepted: { queueKey: () => ({ isAccepted: () => true }) },
  } as unknown as WriteContext
  const slices = createSlicing().open()
  const client = { partner: { id: 'acme' }, owner: 'owner' } as unknown as Client
  const planned = {
    request: { kind: 'batch' },
    body: Buffer.from('body'),
    receivedMs: 0,
    plan: { ids: undefined, records: [{ key: 'key' }] },
    slices,
  } as unknown as PlannedRequest
  const options = {
    known: 'keys',
    recordWithinMs: 1_000,
    isSlow: isSlow && (() => isSlow(clock.nowMs())),
    reading: { slices },
  } as const
  let outcome = 'waits'
  const asked = beginRelayed(context, client, planned, options).then(
    ({ kind }) => (outcome = `${kind} at ${clock.nowMs()}`),
  )
  // `beginRelayed` calls the journal once it has computed the digest of the request.
  await new Promise((resolve) => setImmediate(resolve))
  for (let ms = 0; ms < 8_000 && outcome === 'waits'; ms += 50) await clock.pass(50)
  await asked
  return outcome
}

it('beginRelayed delays the request to V2 by at most recordWithinMs if the journal is not known to be slow', async () => {
  expect(await begin(900)).toBe('known at 900')
  expect(await begin(1_200)).toBe('late at 1000')
  expect(await begin(1_200, () => false)).toBe('late at 1000')
})

it('beginRelayed delays the request to V2 by up to 5 s while the journal is slow but responds', async () => {
  expect(await begin(1_250, () => true)).toBe('known at 1250')
  expect(await begin(4_900, () => true)).toBe('known at 4900')
  expect(await begin(60_000, () => true)).toBe('late at 5000')
  expect(await begin(60_000, (nowMs) => nowMs < 1_600)).toBe('late at 1600')
})
