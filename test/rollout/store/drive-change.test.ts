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

describe.each(databases)(
  'a command that takes a partner a step forward, with a journal in %s',
  (_name, { test }) => {
    test('ends with "gone" if another operator takes the partner back during the step', async (url) => {
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
      test(`proposes and approves the change once even if the first answers of the store are lost ${when} the change is stored`, async (url) => {
        const { store } = await serve(url)
        const losing = losesFirst(store, 'propose', when)
        const proposed = await driveForward(losing, { ...change, approvalForMs: 60_000 }, options)
        expect(proposed).toEqual({ kind: 'needsApproval', revision: 1 })
        const approval = { partner: 'acme', revision: 1, by: 'bob', reason: 'seen' }
        // The only instance never acknowledges the step, so the command ends while it waits for the acknowledgement.
        const approving = losesFirst(store, 'approve', when)
        expect(await driveApproved(approving, approval, { ...options, drainMs: 0 })).toMatchObject({
          kind: 'undrained',
        })
        const trail = await store.history({ partner: 'acme' })
        expect(trail.map(({ action }) => action).toSorted()).toEqual(['approve', 'propose', 'withdraw'])
      })

    test('does not mistake the proposal of another operator for its own proposal if the answer to its own was lost', async (url) => {
      const { store } = await serve(url)
      const approved = { ...change, approvalForMs: 60_000 }
      await driveForward(store, { ...approved, by: 'bob' }, options)
      expect(await driveForward(losesFirst(store, 'propose', 'before'), approved, options)).toMatchObject({
        kind: 'pending',
      })
    })
  },
)

/** Wraps a store so that the first answer of a method is lost, before or after the database has stored the change. */
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

/** Creates a store with a partner at shadow. Its first answers to `apply` are lost, each before or after the change is made. */
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
  ['before', ['before']],
  ['after', ['after']],
] as const)(
  'applyChange applies a change once even if the answer is lost %s the change is stored',
  async (_when, losses) => {
    const { store, ...own } = losing(...losses)
    expect(await applyChange(own, back, 'back')).toEqual({ kind: 'applied', revision: 2 })
    expect(store.applied).toHaveLength(1)
  },
)

it('applyChange returns "stale" if the answer was lost and another change was applied first', async () => {
  const { store, ...own } = losing('before')
  store.set('acme', { stage: 'canary', percent: 5 })
  expect(await applyChange(own, back, 'back')).toEqual({ kind: 'stale' })
})

it('applyChange reports an unknown outcome if the answer was lost and the store then fails', async () => {
  await expect(applyChange(losing('after', 'before'), back, 'back')).rejects.toMatchObject({
    code: 'ADP_JOURNAL_UNAVAILABLE',
    message: expect.stringContaining('not known') as unknown,
  })
})
