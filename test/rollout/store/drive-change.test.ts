import { describe, expect, it } from 'vitest'

import { systemClock } from '../../../src/clock.ts'
import { AdapterError } from '../../../src/errors.ts'
import { applyChange, driveApproved, driveForward } from '../../../src/rollout/store/drive-change.ts'
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

  for (const when of ['before', 'after'] as const)
    test(`is proposed and approved once where the answers to its proposal and its approval are lost ${when} they are stored`, async (url) => {
      const { store } = await serve(url)
      const losing = losesFirst(store, 'propose', when)
      const proposed = await driveForward(losing, { ...change, approvalForMs: 60_000 }, options)
      expect(proposed).toEqual({ kind: 'needsApproval', revision: 1 })
      const approval = { partner: 'acme', revision: 1, by: 'bob', reason: 'seen' }
      // The only instance never acknowledges the step, so it goes as far as to wait for that.
      const approving = losesFirst(store, 'approve', when)
      expect(await driveApproved(approving, approval, { ...options, drainMs: 0 })).toMatchObject({
        kind: 'undrained',
      })
      const trail = await store.history({ partner: 'acme' })
      expect(trail.map(({ action }) => action).toSorted()).toEqual(['approve', 'propose', 'withdraw'])
    })

  test('is not taken for proposed where the answer was lost and another operator has proposed the same step', async (url) => {
    const { store } = await serve(url)
    const approved = { ...change, approvalForMs: 60_000 }
    await driveForward(store, { ...approved, by: 'bob' }, options)
    expect(await driveForward(losesFirst(store, 'propose', 'before'), approved, options)).toMatchObject({
      kind: 'pending',
    })
  })
})

/** Wraps a store so that the first answer of one method is lost, before or after the database has stored the change. */
function losesFirst(
  store: RolloutStore,
  method: 'propose' | 'approve',
  when: 'before' | 'after',
): RolloutStore {
  let isFirst = true
  const lose = async <Result>(ask: () => Promise<Result>): Promise<Result> => {
    if (!isFirst) return ask()
    isFirst = false
    if (when === 'after') await ask()
    throw lost()
  }
  return method === 'propose'
    ? { ...store, propose: (wanted) => lose(() => store.propose(wanted)) }
    : { ...store, approve: (...given) => lose(() => store.approve(...given)) }
}

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
