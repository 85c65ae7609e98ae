import { describe, expect, it } from 'vitest'

import { ScriptedStore } from './scripted-store.ts'
import { fileStage, follow, startInstance } from './start-instance.ts'

const v3 = fileStage('v3')

describe('the stage of a partner in the configuration file', () => {
  it('is stored as the first stage of the partner before V3 gets a write', async () => {
    const store = new ScriptedStore()
    store.mode = 'down'
    const { pass, begin } = await startInstance({ store, file: v3 })
    const early = follow(begin())
    store.mode = 'up'
    await pass(1_000)
    expect([early.outcome, store.begins.get('acme')?.stage]).toEqual(['v3 v3 nothing', 'v3'])
  })

  it.each([[fileStage('legacy')], [fileStage('canary', { percent: 30 })], [fileStage('complete')]])(
    'is ignored after a first stage was stored, whether the store is reachable or not: %o',
    async (file) => {
      const store = new ScriptedStore()
      const first = await startInstance({ store, file: fileStage('shadow') })
      expect(await first.write('school', file)).toMatch(/^v2 shadow/)
      const next = await startInstance({ store, file, number: 2 })
      expect(await next.write()).toMatch(/^v2 shadow/)
      expect(next.stages.describe()).toMatchObject([{ stage: 'shadow', source: 'file' }])
      store.mode = 'down'
      const cutOff = await startInstance({ store, file, kept: first.saved.at(-1) ?? '', number: 3 })
      expect(await cutOff.write()).toMatch(/^v2 shadow/)
    },
  )

  it('is ignored after the stage was set in the store', async () => {
    const store = new ScriptedStore()
    store.set('acme', { stage: 'v3' })
    const { write } = await startInstance({ store, file: fileStage('legacy') })
    expect(await write()).toBe('v3 v3 nothing')
  })
})
