import { expect, it } from 'vitest'

import { AdapterError } from '../../../src/errors.ts'
import { applyChange } from '../../../src/rollout/store/drive-change.ts'
import { createScriptedStore } from '../live/scripted-store.ts'
import { changeTo, legacy, shadow } from './open-stores.ts'

const lost = (): AdapterError => new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'The connection was lost.')
const back = changeTo(legacy, { expectedRevision: 1, from: shadow, by: 'test', reason: 'test' })

/** A store with a partner at shadow, whose first answers to a change are lost: before it was made, or after. */
function losing(...losses: readonly ('before' | 'after')[]) {
  const store = createScriptedStore()
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
