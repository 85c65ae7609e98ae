import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import { goBack } from '../../../src/rollout/guards/go-back.ts'
import { canary, changeTo, legacy, serve, shadow } from '../store/open-stores.ts'

const journalUrl = (): string => `sqlite:${join(mkdtempSync(join(tmpdir(), 'guards-')), 'journal.db')}`

it('a guard takes a partner back to shadow, once, under its own name and with its reason', async () => {
  const { store } = await serve(journalUrl())
  await store.apply(changeTo(canary(20), { from: { ...legacy, stage: 'v3' } }), 'set')
  const both = [goBack(store, 'acme', undefined, 'V3 fails.'), goBack(store, 'acme', undefined, 'V3 fails.')]
  expect((await Promise.all(both)).sort()).toEqual([false, true])
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
  expect(await goBack(store, 'acme', shadow, 'V3 fails.')).toBe(false)
  expect(await goBack(store, 'acme', legacy, 'V3 fails.')).toBe(false)
  expect(await goBack(store, 'acme', undefined, 'V3 fails.')).toBe(false)
  expect((await store.snapshot()).partners.size).toBe(0)
  expect(await goBack(store, 'acme', canary(10), 'V3 fails.')).toBe(true)
  expect((await store.snapshot()).partners.get('acme')?.state?.stage).toBe('shadow')
})
