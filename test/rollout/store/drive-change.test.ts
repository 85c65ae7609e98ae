import { describe, expect, it } from 'vitest'

import { systemClock } from '../../../src/clock.ts'
import { AdapterError } from '../../../src/errors.ts'
import { openRolloutStore } from '../../../src/rollout/store/rollout-store.ts'
import { applyChange, driveApproved, driveForward } from '../../../src/rollout/store/drive-change.ts'
import type { RolloutStore } from '../../../src/rollout/store/rollout-store.ts'
import { eachDatabase } from '../../support/each-database.ts'
import { ScriptedStore } from '../live/scripted-store.ts'
import { acknowledged, changeTo, legacy, serve, type Serving, shadow } from './open-stores.ts'

const databases = eachDatabase()
const change = { ...changeTo(shadow), quietMs: 0 }
const options = { drainMs: 10_000, clock: systemClock }

/** A store whose snapshots let an instance answer what it has seen: `writes` under way, fewer each time. */
function answering({ store, instance }: Pick<Serving, 'store' | 'instance'>, writes: number): RolloutStore {
  let left = writes
  return {
    ...store,
    snapshot: async () => {
      const snapshot = await store.snapshot()
      const revision = snapshot.partners.get('acme')?.pending?.revision
      if (revision !== undefined) {
        await store.acknowledge(instance(), [acknowledged(revision, { writesV2: Math.max(0, left) })])
        left -= 1
      }
      return snapshot
    },
  }
}

describe.each(databases)('a forward change in %s', (_name, { test }) => {
  test('is made once the writes under way have ended', async (url) => {
    const one = await serve(url)
    const store = answering({ store: one.store, instance: () => one.instance() }, 2)
    expect(await driveForward(store, change, options)).toEqual({ kind: 'committed', revision: 1 })
    expect((await one.store.snapshot()).partners.get('acme')?.state).toMatchObject({ ...shadow, revision: 1 })
  })

  test('is withdrawn after its bound, and says who did not drain', async (url) => {
    const [one, silent] = [await serve(url), await serve(url)]
    const store = answering({ store: one.store, instance: () => one.instance() }, 1_000)
    expect(await driveForward(store, change, { ...options, drainMs: 150 })).toMatchObject({
      kind: 'undrained',
      instances: [
        { instance: one.instance(), writes: expect.any(Number) as number },
        { instance: silent.instance(), writes: undefined },
      ],
    })
    const [, withdrawn] = await one.store.history({})
    expect(withdrawn).toMatchObject({ action: 'withdraw', by: 'ada' })
    expect(withdrawn?.reason).toMatch(
      /^not drained in time: instance \d+ \(\d+ writes\), instance \d+ \(no answer\)$/,
    )
    expect((await one.store.snapshot()).partners.get('acme')).toEqual({
      state: undefined,
      pending: undefined,
    })
  })

  test('that is interrupted is withdrawn', async (url) => {
    const one = await serve(url)
    const interruption = new AbortController()
    const store: RolloutStore = {
      ...one.store,
      snapshot: async () => {
        const snapshot = await one.store.snapshot()
        interruption.abort()
        return snapshot
      },
    }
    const result = await driveForward(store, change, { ...options, signal: interruption.signal })
    expect(result).toEqual({ kind: 'interrupted' })
    expect((await one.store.history({})).map(({ action }) => action)).toEqual(['propose', 'withdraw'])
  })

  test('ends when another operator goes back meanwhile', async (url) => {
    const one = await serve(url)
    const store: RolloutStore = {
      ...one.store,
      snapshot: async () => {
        const snapshot = await one.store.snapshot()
        await one.store.apply(changeTo(legacy, { by: 'bob' }), 'set')
        return snapshot
      },
    }
    expect(await driveForward(store, change, options)).toEqual({ kind: 'gone' })
  })

  test('that another operator approves goes on from there', async (url) => {
    const one = await serve(url)
    const waiting = await driveForward(one.store, { ...change, approvalForMs: 60_000 }, options)
    expect(waiting).toEqual({ kind: 'needsApproval', revision: 1 })
    const store = answering({ store: one.store, instance: () => one.instance() }, 0)
    const approval = { partner: 'acme', revision: 1, reason: 'seen' }
    expect(await driveApproved(store, { ...approval, by: 'ada' }, options)).toEqual({ kind: 'own' })
    expect(await driveApproved(store, { ...approval, by: 'bob' }, options)).toEqual({
      kind: 'committed',
      revision: 1,
    })
  })

  test('is made at once where nobody serves', async (url) => {
    const one = await serve(url)
    await one.journal.close()
    const store = await openRolloutStore({ url })
    expect(await driveForward(store, change, options)).toEqual({ kind: 'committed', revision: 1 })
    await store.close()
  })
})

const lost = (): AdapterError => new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The connection was lost.')
const back = changeTo(legacy, { expectedRevision: 1, from: shadow, by: 'test', reason: 'test' })

/** A store with a partner at shadow, whose first answers to a change are lost: before it was made, or after. */
function losing(...losses: readonly ('before' | 'after')[]) {
  const store = new ScriptedStore()
  store.set('acme', { stage: 'shadow' })
  const left = [...losses]
  const apply: typeof store.apply = async (change) => {
    const loss = left.shift()
    if (loss === 'before') throw lost()
    const result = await store.apply(change)
    if (loss === 'after') throw lost()
    return result
  }
  return { store, apply, snapshot: () => store.snapshot() }
}

it.each([
  ['before it was made', ['before']],
  ['after it was made', ['after']],
] as const)('a change whose answer was lost %s is made once', async (_when, losses) => {
  const { store, ...own } = losing(...losses)
  expect(await applyChange(own, back, 'back')).toEqual({ kind: 'applied', revision: 2 })
  expect(store.applied).toHaveLength(1)
})

it('a change that another one came before is not taken for made', async () => {
  const { store, ...own } = losing('before')
  store.set('acme', { stage: 'canary', percent: 5 })
  expect(await applyChange(own, back, 'back')).toEqual({ kind: 'stale' })
})

it('a change of which nothing can be learned is not said to have failed', async () => {
  await expect(applyChange(losing('after', 'before'), back, 'back')).rejects.toMatchObject({
    code: 'ADP_JOURNAL_UNAVAILABLE',
    message: 'Whether the change of acme was made is not known: The connection was lost.',
  })
})
