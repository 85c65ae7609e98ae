import { describe, expect, it } from 'vitest'

import { ScriptedStore } from './scripted-store.ts'
import { fileStage, follow, startInstance } from './start-instance.ts'

const v3 = fileStage('v3')
const overridden = fileStage('v3', { override: 'legacy' })

/** An instance at v3 whose store dies, and whose file is given an override then: V2 serves. */
async function overrideInOutage() {
  const store = new ScriptedStore()
  store.set('acme', { stage: 'v3' })
  const instance = await startInstance({ store, file: v3 })
  store.mode = 'down'
  await instance.pass(11_000)
  expect(await instance.write('school', overridden)).toBe('v2 legacy keys')
  await instance.pass(500)
  return { ...instance, store }
}

describe('an override', () => {
  it('is followed by the store, so that a partner goes forward from there by the usual steps', async () => {
    const store = new ScriptedStore()
    store.set('acme', { stage: 'canary', percent: 40 })
    const { stages, pass } = await startInstance({ store, file: fileStage('v3', { override: 'shadow' }) })
    await pass(500)
    expect(store.applied).toMatchObject([
      { by: 'file', reason: 'stageOverride of the configuration file', to: { stage: 'shadow', percent: 40 } },
    ])
    expect(stages.describe()).toMatchObject([{ stage: 'shadow', source: 'store' }])
  })

  it('that is taken out of the file during an outage counts until the store has followed it', async () => {
    const { store, write, pass } = await overrideInOutage()
    expect(await write('school', v3)).toBe('v2 legacy keys')
    store.mode = 'up'
    await pass(1_000)
    expect(store.applied).toMatchObject([{ from: { stage: 'v3' }, to: { stage: 'legacy' } }])
    expect(await write('school', v3)).toMatch(/^v2 legacy/)
    store.set('acme', { stage: 'shadow' })
    await pass(500)
    expect(await write('school', v3)).toMatch(/^v2 shadow/)
  })

  it('that is taken out of the file while the instance is down counts as well, with and without the store', async () => {
    const { saved, store } = await overrideInOutage()
    const kept = saved.at(-1) ?? ''
    const dead = new ScriptedStore()
    dead.mode = 'down'
    const cutOff = await startInstance({ store: dead, file: v3, kept, number: 2 })
    expect(await cutOff.write('school', v3)).toBe('v2 legacy keys')
    store.mode = 'up'
    const next = await startInstance({ store, file: v3, kept, number: 3 })
    expect(await next.write('school', v3)).toMatch(/^v2 legacy/)
    expect(store.applied).toHaveLength(1)
  })

  it('that was taken out of the file is forgotten once the stage was changed after it', async () => {
    const { saved, store } = await overrideInOutage()
    store.mode = 'up'
    store.set('acme', { stage: 'legacy' })
    store.set('acme', { stage: 'v3' })
    const next = await startInstance({ store, file: v3, kept: saved.at(-1) ?? '', number: 3 })
    expect(await next.write('school', v3)).toBe('v3 v3 nothing')
    expect(store.applied).toEqual([])
  })

  it('is kept also where the store was never read', async () => {
    const store = new ScriptedStore()
    store.mode = 'down'
    const first = await startInstance({ store, file: v3 })
    expect(await first.write('school', overridden)).toBe('v2 legacy keys')
    await first.pass(1_000)
    store.set('acme', { stage: 'v3' })
    const second = await startInstance({ store, file: v3, kept: first.saved.at(-1) ?? '', number: 2 })
    expect(second.stages.isReady()).toBe(false)
    store.mode = 'up'
    await second.pass(1_000)
    expect(await second.write('school', v3)).toMatch(/^v2 legacy/)
  })

  it('keeps a step forward waiting as long as V2 serves writes by it', async () => {
    const store = new ScriptedStore()
    store.set('acme', { stage: 'shadow' })
    const { begin, pass } = await startInstance({ store })
    await begin('school', fileStage('v3', { override: 'shadow' }))
    const revision = store.propose('acme', { stage: 'canary', percent: 100 })
    await pass(500)
    expect(store.said(1, 'acme')).toMatchObject({ pendingRevision: revision, writesV2: 1 })
  })
})

describe('the stage of the file', () => {
  it('is kept in the store at the first start, before V3 is sent a write', async () => {
    const store = new ScriptedStore()
    store.mode = 'down'
    const { pass, begin } = await startInstance({ store, file: v3 })
    const early = follow(begin())
    store.mode = 'up'
    await pass(1_000)
    expect([early.outcome, store.begins.get('acme')?.stage]).toEqual(['v3 v3 nothing', 'v3'])
  })

  it.each([[fileStage('v3')], [fileStage('canary', { percent: 30 })], [fileStage('complete')]])(
    'that was raised does not count at the next start: %o',
    async (file) => {
      const store = new ScriptedStore()
      const first = await startInstance({ store, file: fileStage('legacy') })
      expect(await first.write()).toMatch(/^v2 legacy/)
      const next = await startInstance({ store, file, number: 2 })
      expect(await next.write()).toMatch(/^v2 legacy/)
      expect(next.stages.describe()).toMatchObject([{ stage: 'legacy', source: 'file', revision: 0 }])
      // Nor without the store.
      store.mode = 'down'
      const cutOff = await startInstance({ store, file, kept: first.saved.at(-1) ?? '', number: 3 })
      expect(await cutOff.write()).toMatch(/^v2 legacy/)
    },
  )

  it('that another instance has lower takes the partner back on all of them', async () => {
    const store = new ScriptedStore()
    const high = await startInstance({ store, file: v3 })
    const low = await startInstance({ store, file: fileStage('legacy'), number: 2 })
    await high.pass(500)
    await low.pass(500)
    expect([await high.write(), await low.write()]).toEqual(['v2 legacy keys', 'v2 legacy keys'])
    expect(store.applied).toMatchObject([{ reason: 'stage of the configuration file', expectedRevision: 0 }])
  })
})
