import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import {
  createLiveGuards,
  goBack,
  guardStateName,
  type GuardedWrite,
  readGuardState,
} from '../../../src/rollout/guards/live-guards.ts'
import { judge } from '../../../src/rollout/guards/sequential-test.ts'
import type { RolloutStore } from '../../../src/rollout/store/rollout-store.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { startDuties } from '../../support/start-duties.ts'
import { canary, changeTo, legacy, serve, shadow } from '../store/open-stores.ts'

const journalUrl = (): string => `sqlite:${join(mkdtempSync(join(tmpdir(), 'guards-')), 'journal.db')}`

interface Watching {
  readonly failures: readonly string[]
  readonly stop: () => Promise<void>
  readonly told: string[]
  /** Records writes of 20 schools in each window. The first five schools are on V3. */
  readonly write: (windows: number, isBad: (school: number) => boolean) => Promise<void>
}

function watch(
  store: RolloutStore,
  given: Partial<GuardedWrite> = {},
  act: 'back' | 'warn' = 'back',
): Watching {
  const clock = createManualClock()
  let [nowMs, window] = [0, 0]
  const told: string[] = []
  const guards = createLiveGuards({
    store,
    nowMs: () => nowMs,
    actOf: () => act,
    events: {
      guardActed: ({ partner, v3, v3Bad, v2, v2Bad }) =>
        void told.push(`${partner}: ${v3Bad} of ${v3}, ${v2Bad} of ${v2}`),
      guardWarned: ({ partner, v3Bad, v2Bad }) => void told.push(`warned of ${partner}: ${v3Bad}, ${v2Bad}`),
    },
    metrics: { guardCounted: () => undefined },
  })
  const { failures, stop } = startDuties(guards.duties, clock)
  const write = async (windows: number, isBad: (school: number) => boolean): Promise<void> => {
    for (const last = window + windows; window < last; window++) {
      for (let school = 0; school < 20; school++) {
        const side = school < 5 ? ('v3' as const) : ('v2' as const)
        const one: GuardedWrite = {
          partner: 'acme',
          unit: `school ${school}`,
          stage: 'canary',
          revision: 1,
          side,
          receivedMs: nowMs,
          records: 1,
          ...given,
        }
        guards.begin(one)?.end({ outcome: isBad(school) ? 'unknown' : 'good', latencyMs: 20 })
      }
      nowMs += 10_000
    }
    await clock.pass(1_000)
  }
  return { failures, stop, told, write }
}

/** Takes acme to canary with 20 %, which is revision 1. */
const begin = (store: RolloutStore) =>
  store.apply(changeTo(canary(20), { from: { ...legacy, stage: 'v3' } }), 'set')

const stageOf = async (store: RolloutStore) => {
  const { stage, revision } = (await store.snapshot()).partners.get('acme')?.state ?? {}
  return [stage, revision]
}

describe('createLiveGuards', () => {
  it('takes the partner back to V2 once if V3 fails on several instances', async () => {
    const url = journalUrl()
    const { store } = await serve(url)
    await begin(store)
    const other = await serve(url)
    const [one, two] = [watch(store), watch(other.store)]
    await one.write(20, () => false)
    await expect.poll(() => store.readText(guardStateName('acme'))).toBeDefined()
    await two.write(5, (school) => school < 5)
    await expect.poll(() => two.told).toEqual(['acme: 25 of 25, 0 of 75'])
    await two.stop()
    await one.write(1, (school) => school < 5)
    await one.stop()
    expect(one.told).toEqual([])
    expect(await stageOf(store)).toEqual(['shadow', 2])
    const reason = expect.stringMatching(/^V3 does worse than V2 in the same period: 25 of 25 /) as unknown
    expect((await store.history({})).slice(1)).toMatchObject([{ action: 'guard', by: 'guard', reason }])
    expect(await store.verify()).toMatchObject({ broken: undefined })
    expect(await readGuardState(store, 'acme')).toMatchObject({ revision: 1, episode: 1 })
  })

  it('warns once, and does not change the stage, if the guard is set to warn', async () => {
    const { store } = await serve(journalUrl())
    await begin(store)
    const { stop, told, write } = watch(store, {}, 'warn')
    await write(20, () => false)
    await write(10, (school) => school < 5)
    await stop()
    expect(told).toEqual([expect.stringMatching(/^warned of acme: \d+, 0$/)])
    expect(await stageOf(store)).toEqual(['canary', 1])
    expect(judge(await readGuardState(store, 'acme')).kind).toBe('alarm')
  })

  it('judges each revision of the stage only by the writes of that revision', async () => {
    const { store } = await serve(journalUrl())
    await begin(store)
    await store.apply(changeTo(canary(10), { from: canary(20), expectedRevision: 1 }), 'set')
    const late = watch(store)
    await late.write(20, () => false)
    await late.write(5, (school) => school < 5)
    await late.stop()
    // The writes belong to revision 1, but an operator has changed the percentage since then.
    expect([late.told, await stageOf(store)]).toEqual([[], ['canary', 2]])
    const current = watch(store, { revision: 2 })
    await current.write(1, (school) => school < 5)
    await current.write(5, () => false)
    await current.stop()
    expect(current.told).toEqual([])
    expect(await readGuardState(store, 'acme')).toMatchObject({ revision: 2, counted: { v3: 30, v2: 90 } })
  })

  it('counts nothing at stages other than canary', async () => {
    const { store } = await serve(journalUrl())
    for (const stage of ['legacy', 'shadow', 'v3', 'complete'] as const) {
      const { stop, told, write } = watch(store, { stage })
      await write(5, (school) => school < 5)
      await stop()
      expect(told).toEqual([])
    }
    expect(await store.readText(guardStateName('acme'))).toBeUndefined()
  })

  it('reports damaged evidence once, and does not overwrite that evidence', async () => {
    const { store } = await serve(journalUrl())
    await store.updateText(guardStateName('acme'), () => '{"version":1}')
    const { failures, stop, write } = watch(store)
    await write(5, (school) => school < 5)
    await expect.poll(() => failures).toHaveLength(1)
    await write(5, (school) => school < 5)
    await stop()
    expect(failures).toEqual(['guards: ADP_JOURNAL_DAMAGED'])
    expect(await store.readText(guardStateName('acme'))).toBe('{"version":1}')
  })
})

it('goBack takes a partner at canary back to V2 even if the stage comes from the file', async () => {
  const { store } = await serve(journalUrl())
  await store.begin('old', legacy)
  await store.begin('next', shadow)
  await store.begin('acme', canary(10))
  const back = (partner: string): Promise<boolean> =>
    goBack(store, { partner, revision: 0, reason: 'V3 fails.' })
  expect([await back('old'), await back('next'), await back('unknown')]).toEqual([false, false, false])
  expect((await store.snapshot()).partners.size).toBe(0)
  expect(await back('acme')).toBe(true)
  expect((await store.snapshot()).partners.get('acme')?.state?.stage).toBe('shadow')
})

it('goBack ignores an alarm about an earlier revision if an operator changes the stage at the same moment', async () => {
  const { store } = await serve(journalUrl())
  await store.apply(changeTo(canary(20), { from: { ...legacy, stage: 'v3' } }), 'set')
  const alarm = { partner: 'acme', revision: 1, reason: 'V3 fails.' }
  const lower = (percent: number, expectedRevision: number): Promise<unknown> =>
    store.apply(changeTo(canary(percent), { from: canary(20), expectedRevision }), 'set')
  // The operator changes the stage after `goBack` has read the stage, and before `goBack` applies its change.
  const late = {
    snapshot: async () => {
      const snapshot = await store.snapshot()
      await lower(10, 1)
      return snapshot
    },
    apply: (...change: Parameters<typeof store.apply>) => store.apply(...change),
  }
  expect(await goBack(late, alarm)).toBe(false)
  expect(await goBack(store, alarm)).toBe(false)
  expect((await store.snapshot()).partners.get('acme')?.state).toMatchObject({ revision: 2, percent: 10 })
  expect(await goBack(store, { ...alarm, revision: 2 })).toBe(true)
})
