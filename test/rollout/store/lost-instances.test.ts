import { spawnSync } from 'node:child_process'

import { describe, expect, vi } from 'vitest'

import { ownIdentity, type ProcessIdentity } from '../../../src/journal/process-identity.ts'
import { takeLease } from '../../../src/journal/lease.ts'
import { openStore } from '../../../src/journal/open-store.ts'
import { systemClock } from '../../../src/clock.ts'
import { eachDatabase } from '../../support/each-database.ts'
import { acknowledged, canary, changeTo, serve, type Serving, shadow, soon } from './open-stores.ts'

const databases = eachDatabase()

/** An instance on another machine, so that only its lease can show that it is dead. */
const far: ProcessIdentity = { ...ownIdentity(), host: 'far', pid: 77 }
const toCanary = { ...changeTo(canary(5), { from: shadow, expectedRevision: 1 }), ...soon, quietMs: 1_000 }

/** Adds an instance whose lease has ended. Returns its number. */
async function addCutOff({ journal }: Serving, identity = far): Promise<number> {
  const { id } = await journal.database.db
    .insertInto('journal_instances')
    .values({ ...identity, lease_until: Date.now() - 60_000, lease_ms: 1 })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

/** Takes the partner to `shadow` although an instance does not renew its lease. */
async function toShadow({ store, instance }: Serving): Promise<void> {
  await store.propose({ ...changeTo(shadow), ...soon })
  await store.acknowledge(instance(), [acknowledged(1)])
  expect(await store.commit('acme', 1)).toEqual({ kind: 'committed' })
}

/** Runs two takeovers, because the first only notes the leases, and the second finds the leases that were not renewed. */
async function takeOver({ journal }: Serving): Promise<void> {
  await journal.takeOver()
  await new Promise((resolve) => setTimeout(resolve, 10))
  await journal.takeOver()
}

describe.each(databases)(
  'the store of stages in %s, with an instance that does not renew its lease',
  (_name, { test }) => {
    test('refuses a step to canary, and names the instance as lost, before and after a takeover', async (url) => {
      const serving = await serve(url)
      const { store } = serving
      const cutOff = await addCutOff(serving)
      await toShadow(serving)
      const lost = { kind: 'lost', instances: [{ instance: cutOff, host: 'far', pid: 77 }] }
      expect(await store.propose(toCanary)).toMatchObject(lost)
      await takeOver(serving)
      expect(await store.propose(toCanary)).toMatchObject(lost)
      expect(await store.lost()).toMatchObject(lost.instances)
    })

    test('refuses to commit a step to canary if the instance stopped renewing its lease after the proposal', async (url) => {
      const serving = await serve(url)
      const { store, instance } = serving
      await toShadow(serving)
      await vi.waitFor(async () => {
        expect(await store.propose({ ...toCanary, quietMs: 1 })).toMatchObject({ kind: 'proposed' })
      })
      await store.acknowledge(instance(), [acknowledged(2)])
      await addCutOff(serving)
      expect(await store.commit('acme', 2)).toMatchObject({ kind: 'lost', instances: [{ host: 'far' }] })
    })

    test('still allows a step to shadow and a step back', async (url) => {
      const serving = await serve(url)
      const { store } = serving
      await addCutOff(serving)
      await toShadow(serving)
      const back = changeTo({ ...shadow, stage: 'legacy' }, { from: shadow, expectedRevision: 1 })
      expect(await store.apply(back, 'back')).toMatchObject({ kind: 'applied' })
    })

    test('requires the acknowledgement of the instance once its process has taken a new lease', async (url) => {
      const serving = await serve(url)
      const { store, instance } = serving
      await addCutOff(serving)
      await toShadow(serving)
      await takeOver(serving)
      const own = openStore(url, { timeoutMs: 5_000, wallMs: Date.now })
      const ignore = (): void => undefined
      const lease = await takeLease({
        store: own,
        clock: systemClock,
        leaseMs: 10_000,
        identity: far,
        onRenewal: ignore,
        onLost: ignore,
      })
      expect(await store.lost()).toEqual([])
      await vi.waitFor(
        async () =>
          expect(await store.propose({ ...toCanary, quietMs: 1 })).toMatchObject({ kind: 'proposed' }),
        { timeout: 60_000 },
      )
      await store.acknowledge(instance(), [acknowledged(2)])
      expect(await store.commit('acme', 2)).toMatchObject({
        kind: 'undrained',
        instances: [{ instance: lease.instance(), host: 'far' }],
      })
      await lease.end()
      await own.close()
    })

    test('refuses a step for only one resend window if the process of the instance has ended', async (url) => {
      const serving = await serve(url)
      const { store } = serving
      const { pid } = spawnSync('true')
      await addCutOff(serving, { ...ownIdentity(), pid })
      await toShadow(serving)
      expect(await store.propose({ ...toCanary, quietMs: 60_000 })).toMatchObject({ kind: 'early' })
      const [{ nowMs }, { killedMs }] = [await store.snapshot(), await store.unrecorded('acme')]
      expect(nowMs - (killedMs ?? 0)).toBeLessThan(60_000)
    })

    test('lets an operator dismiss the lost instance, and adds the dismissal to the audit trail', async (url) => {
      const serving = await serve(url)
      const { store, instance } = serving
      const cutOff = await addCutOff(serving)
      await toShadow(serving)
      await takeOver(serving)
      expect(await store.dismiss(instance(), 'ada', 'off')).toEqual({ kind: 'live' })
      expect(await store.dismiss(999, 'ada', 'off')).toEqual({ kind: 'unknown' })
      expect(await store.dismiss(cutOff, 'ada', 'its container was deleted')).toMatchObject({
        kind: 'dismissed',
        host: 'far',
        pid: 77,
      })
      expect(await store.dismiss(cutOff, 'ada', 'off')).toEqual({ kind: 'unknown' })
      // The dismissed instance may have served requests until now, so canary must wait for a resend window.
      expect(await store.propose({ ...toCanary, quietMs: 60_000 })).toMatchObject({ kind: 'early' })
      expect(await store.lost()).toEqual([])
      expect((await store.history({})).at(-1)).toMatchObject({
        by: 'ada',
        partner: '',
        action: 'dismiss',
        reason: `instance ${cutOff} (far, process 77) is off: its container was deleted`,
      })
      expect(await store.verify()).toMatchObject({ broken: undefined })
    })
  },
)
