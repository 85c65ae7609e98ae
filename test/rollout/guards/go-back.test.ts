import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import { goBack, type WentBack } from '../../../src/rollout/guards/go-back.ts'
import type { StageSetting } from '../../../src/rollout/stage.ts'
import { canary, changeTo, legacy, serve, shadow } from '../store/open-stores.ts'

const journalUrl = (): string => `sqlite:${join(mkdtempSync(join(tmpdir(), 'guards-')), 'journal.db')}`

it('a guard takes a partner back to shadow, once, under its own name and with its reason', async () => {
  const { store } = await serve(journalUrl())
  await store.apply(changeTo(canary(20), { from: { ...legacy, stage: 'v3' } }), 'set')
  const alarm = { partner: 'acme', revision: 1, fileStage: undefined, reason: 'V3 fails.' }
  expect((await Promise.all([goBack(store, alarm), goBack(store, alarm)])).sort()).toEqual([
    'applied',
    'gone',
  ])
  const stored = (await store.snapshot()).partners.get('acme')
  expect(stored?.state).toMatchObject({ stage: 'shadow', percent: 20, by: 'guard', reason: 'V3 fails.' })
  expect((await store.history({ partner: 'acme' })).at(-1)).toMatchObject({
    action: 'guard',
    by: 'guard',
    reason: 'V3 fails.',
  })
  expect(await store.verify()).toMatchObject({ broken: undefined })
})

it('a guard takes a partner back that has the stage of the file, and leaves alone what V2 serves', async () => {
  const { store } = await serve(journalUrl())
  const from = (fileStage: StageSetting | undefined): Promise<WentBack> =>
    goBack(store, { partner: 'acme', revision: 0, fileStage, reason: 'V3 fails.' })
  expect([await from(shadow), await from(legacy), await from(undefined)]).toEqual(['gone', 'gone', 'gone'])
  expect((await store.snapshot()).partners.size).toBe(0)
  expect(await from(canary(10))).toBe('applied')
  expect((await store.snapshot()).partners.get('acme')?.state?.stage).toBe('shadow')
})

it('an alarm about an earlier stage or share changes nothing, whenever the operator changes it', async () => {
  const { store } = await serve(journalUrl())
  await store.apply(changeTo(canary(20), { from: { ...legacy, stage: 'v3' } }), 'set')
  const alarm = { partner: 'acme', revision: 1, fileStage: undefined, reason: 'V3 fails.' }
  const lower = (percent: number, expectedRevision: number): Promise<unknown> =>
    store.apply(changeTo(canary(percent), { from: canary(20), expectedRevision }), 'set')
  // Between the reading of the stage and the change.
  const late = {
    snapshot: async () => {
      const snapshot = await store.snapshot()
      await lower(10, 1)
      return snapshot
    },
    apply: (...change: Parameters<typeof store.apply>) => store.apply(...change),
  }
  expect(await goBack(late, alarm)).toBe('changed')
  expect(await goBack(store, alarm)).toBe('changed')
  expect((await store.snapshot()).partners.get('acme')?.state).toMatchObject({ revision: 2, percent: 10 })
  expect(await goBack(store, { ...alarm, revision: 2 })).toBe('applied')
})
