import { describe, expect, it } from 'vitest'

import { systemClock } from '../../../src/clock.ts'
import { AdapterError } from '../../../src/errors.ts'
import { applyChange, driveForward } from '../../../src/rollout/store/drive-change.ts'
import type { RolloutStore } from '../../../src/rollout/store/rollout-store.ts'
import { eachDatabase } from '../../support/each-database.ts'
import { ScriptedStore } from '../live/scripted-store.ts'
import { changeTo, legacy, serve, shadow } from './open-stores.ts'

const databases = eachDatabase()
const change = { ...changeTo(shadow), quietMs: 0 }
const options = { drainMs: 10_000, clock: systemClock }

describe.each(databases)('a forward change in %s', (_name, { test }) => {
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
