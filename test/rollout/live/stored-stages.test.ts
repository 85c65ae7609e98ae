import { describe, expect, it } from 'vitest'

import type { Stage } from '../../../src/rollout/stage.ts'
import { ScriptedStore } from './scripted-store.ts'
import { fileStage, follow, LEASE_MS, startInstance } from './start-instance.ts'

const canary = (percent: number) => ({ stage: 'canary', percent }) as const

describe('createStoredStages', () => {
  it('takes the stage from the file until the store has one, and ignores the file from then on', async () => {
    const { store, pass, write, stages, log } = await startInstance({ file: fileStage('v3') })
    expect(await write()).toBe('v3 v3 nothing')
    expect(stages.describe()).toMatchObject([{ stage: 'v3', source: 'file' }])
    // A percentage left over from canary must not count.
    store.set('acme', { stage: 'shadow', percent: 50 })
    await pass(500)
    expect(await write()).toBe('v2 shadow keys')
    expect(await write('school', fileStage('complete'))).toBe('v2 shadow keys')
    expect(stages.describe()).toMatchObject([{ stage: 'shadow', percent: 0, source: 'store' }])
    expect(log).toEqual([
      'stageChanged {"partner":"acme","from":"v3","to":"shadow","percent":0,"revision":1,"source":"store"}',
    ])
  })
})

it('neither saves nor acknowledges an answer that arrives after stop', async () => {
  const { store, stages, pass, saved } = await startInstance()
  store.mode = 'hung'
  await pass(500)
  store.mode = 'up'
  store.set('acme', { stage: 'shadow' })
  await stages.stop()
  const before = saved.length
  store.answer('now')
  await pass(1_000)
  expect([saved.length, store.said(1, 'acme')?.revision]).toEqual([before, 0])
})

describe('an instance with a pending change', () => {
  const begun = async () => {
    const instance = await startInstance()
    instance.store.set('acme', { stage: 'shadow' })
    await instance.pass(500)
    return instance
  }

  it('holds new writes that would change sides, and is drained once the writes under way have ended', async () => {
    const { store, pass, begin, read } = await begun()
    const underWay = await begin()
    const revision = store.propose('acme', canary(100))
    await pass(500)
    const held = follow(begin())
    expect(await read()).toMatch(/^v2/)
    expect(store.said(1, 'acme')).toMatchObject({ pendingRevision: revision, writesV2: 1, writesV3: 0 })
    underWay.release()
    underWay.release()
    await pass(0)
    expect(store.said(1, 'acme')).toMatchObject({ pendingRevision: revision, writesV2: 0, writesV3: 0 })
    expect(held.outcome).toBe('waits')
    store.commit('acme')
    await pass(500)
    expect(held.outcome).toBe('v3 canary nothing')
    expect(store.said(1, 'acme')).toMatchObject({ revision, pendingRevision: undefined })
  })

  it('holds writes for the first change of a partner, while its stage is still that of the file', async () => {
    const { store, pass, begin } = await startInstance({ file: fileStage('shadow') })
    const revision = store.propose('acme', canary(100))
    await pass(500)
    const held = follow(begin())
    await pass(0)
    expect(held.outcome).toBe('waits')
    expect(store.said(1, 'acme')).toMatchObject({ revision: 0, pendingRevision: revision })
    store.commit('acme')
    await pass(500)
    expect(held.outcome).toBe('v3 canary nothing')
  })

  it('neither holds nor counts writes of units that stay on their side', async () => {
    const { store, pass, begin, write } = await begun()
    await begin('stays')
    store.propose('acme', { ...canary(100), never: ['stays'] })
    await pass(500)
    expect(await write('stays')).toMatch(/^v2 shadow/)
    expect(store.said(1, 'acme')).toMatchObject({ writesV2: 0 })
    const held = follow(begin('moves'))
    await pass(0)
    expect(held.outcome).toBe('waits')
  })

  it('releases held writes to the old side only once the change was withdrawn', async () => {
    const { store, pass, begin } = await begun()
    store.propose('acme', canary(100))
    await pass(500)
    const held = follow(begin())
    await pass(5_000)
    expect(held.outcome).toBe('waits')
    store.withdraw('acme')
    await pass(500)
    expect(held.outcome).toMatch(/^v2 shadow/)
  })

  it('ignores a change that still needs an approval', async () => {
    const { store, pass, write } = await begun()
    store.propose('acme', canary(100), true)
    await pass(500)
    expect(await write()).toMatch(/^v2 shadow/)
    expect(store.said(1, 'acme')?.pendingRevision).toBeUndefined()
  })

  it('refuses held writes if the end of the change cannot be read in time', async () => {
    const { store, pass, begin, log } = await begun()
    store.propose('acme', canary(100))
    await pass(500)
    const held = follow(begin())
    store.mode = 'down'
    await pass(14_900)
    expect(held.outcome).toBe('waits')
    await pass(200)
    expect(held.outcome).toBe('ADP_STAGE_UNKNOWN')
    expect(log).toContain('stageRefused {"partner":"acme","reason":"changing"}')
  })

  it('refuses a write if too many writes are held', async () => {
    const { store, pass, begin } = await startInstance({ options: { maxHeld: 2 } })
    store.set('acme', { stage: 'shadow' })
    store.propose('acme', canary(100))
    await pass(500)
    const all = [follow(begin()), follow(begin()), follow(begin())]
    await pass(0)
    expect(all.map(({ outcome }) => outcome)).toEqual(['waits', 'waits', 'ADP_OVERLOADED'])
  })

  it('refuses the latest write of the partner and unit with the most held writes, so that others can wait', async () => {
    const { store, stages, pass, log } = await startInstance({ options: { maxHeld: 4 } })
    for (const partner of ['acme', 'beta']) {
      store.set(partner, { stage: 'shadow' })
      store.propose(partner, canary(100))
    }
    await pass(500)
    const wait = (id: string, unit: string) =>
      follow(Promise.resolve(stages.enter({ id, fileStage: fileStage('legacy') }, { kind: 'batch', unit })))
    const crowd = ['a', 'b', 'b', 'b'].map((unit) => wait('acme', unit))
    const others = [wait('beta', 'c'), wait('beta', 'd'), wait('acme', 'e')]
    await pass(0)
    const outcomes = [...crowd, ...others].map(({ outcome }) => (outcome === 'waits' ? 'waits' : 'refused'))
    expect(outcomes).toEqual(['waits', 'waits', 'refused', 'refused', 'waits', 'waits', 'refused'])
    expect(log.filter((line) => line.includes('overloaded'))).toHaveLength(3)
  })

  it('does not release held writes on an answer from before the change', async () => {
    const { store, pass, begin } = await begun()
    store.mode = 'hung'
    // Two questions are open together because the first takes too long. The second has read the stages before the change and is answered
    // last.
    await pass(500)
    await pass(1_000)
    store.propose('acme', canary(100))
    store.answer('now')
    await pass(0)
    const held = follow(begin())
    store.answer('then')
    await pass(0)
    expect(held.outcome).toBe('waits')
  })

  it('requires the identity of batches at legacy as soon as a step to shadow is acknowledged', async () => {
    const { store, pass, write } = await startInstance()
    await pass(2_000)
    expect(await write()).toBe('v2 legacy nothing')
    const revision = store.propose('acme', { stage: 'shadow' })
    await pass(500)
    expect(store.said(1, 'acme')).toMatchObject({ pendingRevision: revision })
    expect(await write()).toBe('v2 legacy identity')
    store.commit('acme')
    expect(await write()).toBe('v2 legacy identity')
  })

  it('reports writes served at legacy without the store before it acknowledges a change', async () => {
    const { store, pass, write } = await startInstance()
    await pass(2_000)
    expect(await write()).toBe('v2 legacy nothing')
    await pass(500)
    expect([...store.unrecorded]).toEqual([])
    store.mode = 'down'
    await pass(LEASE_MS)
    expect(await write()).toBe('v2 legacy nothing')
    store.set('acme', { stage: 'shadow' })
    const revision = store.propose('acme', canary(100))
    const acknowledge = store.acknowledge.bind(store)
    store.acknowledge = (instance, rows) => {
      expect([...store.unrecorded]).toEqual([['acme', expect.any(Number)]])
      return acknowledge(instance, rows)
    }
    store.mode = 'up'
    await pass(500)
    expect(store.said(1, 'acme')).toMatchObject({ pendingRevision: revision })
  })

  it('reports the age of the last unrecorded write before it acknowledges a change', async () => {
    const { stages, store, pass } = await begun()
    store.mode = 'down'
    stages.noteUnrecorded('acme')
    await pass(4_000)
    expect([...store.unrecorded]).toEqual([])
    const revision = store.propose('acme', canary(100))
    const acknowledge = store.acknowledge.bind(store)
    store.acknowledge = (instance, rows) => {
      expect([...store.unrecorded]).toEqual([['acme', expect.any(Number)]])
      return acknowledge(instance, rows)
    }
    store.mode = 'up'
    await pass(500)
    expect(store.said(1, 'acme')).toMatchObject({ pendingRevision: revision })
    expect(store.unrecorded.get('acme')).toBeGreaterThan(3_900)
    await pass(2_000)
    expect(store.unrecorded.get('acme')).toBeLessThan(4_600)
  })

  it('reports a write admitted at legacy that ended at shadow before it counts as drained', async () => {
    const { store, pass, begin } = await startInstance()
    await pass(2_000)
    const write = await begin()
    expect(write).toMatchObject({ stage: 'legacy', known: 'nothing' })
    store.set('acme', { stage: 'shadow' })
    await pass(5_000)
    const revision = store.propose('acme', canary(100))
    await pass(500)
    expect(store.said(1, 'acme')).toMatchObject({ pendingRevision: revision, writesV2: 1 })
    const acknowledge = store.acknowledge.bind(store)
    store.acknowledge = (instance, rows) => {
      expect([...store.unrecorded]).toEqual([['acme', expect.any(Number)]])
      return acknowledge(instance, rows)
    }
    write.release()
    await pass(500)
    expect(store.said(1, 'acme')).toMatchObject({ pendingRevision: revision, writesV2: 0 })
    expect(store.unrecorded.get('acme')).toBeLessThan(600)
  })

  it('saves a change to its file before it acknowledges the change', async () => {
    const save = { fails: false }
    const instance = await startInstance({
      options: {
        kept: {
          load: async () => undefined,
          save: async () => {
            if (save.fails) throw new Error('disk full')
          },
        },
      },
    })
    const { store, pass, log } = instance
    store.set('acme', { stage: 'shadow' })
    await pass(500)
    save.fails = true
    const revision = store.propose('acme', canary(100))
    await pass(2_000)
    expect(store.said(1, 'acme')?.pendingRevision).toBeUndefined()
    expect(log).toContain('stagesNotKept {}')
    save.fails = false
    await pass(500)
    expect(store.said(1, 'acme')).toMatchObject({ pendingRevision: revision })
  })
})

describe('an instance after back', () => {
  it('serves V2 from the first read on, releases held writes and acknowledges the change', async () => {
    const { store, pass, begin, write } = await startInstance()
    store.set('acme', canary(50))
    store.propose('acme', { stage: 'v3' })
    await pass(500)
    const units = Array.from({ length: 20 }, (_, index) => `school ${index}`)
    const held = units.map((unit) => follow(begin(unit)))
    await pass(0)
    expect(held.map(({ outcome }) => outcome)).toContain('waits')
    store.set('acme', { stage: 'shadow' })
    await pass(500)
    expect(held.map(({ outcome }) => outcome).filter((outcome) => outcome === 'waits')).toEqual([])
    expect(await write()).toBe('v2 shadow keys')
    expect(store.said(1, 'acme')).toMatchObject({ revision: 3, pendingRevision: undefined })
  })

  it('sees the change within two seconds if the store answers late', async () => {
    const { store, pass, write } = await startInstance({ file: fileStage('v3') })
    store.mode = 'hung'
    await pass(500)
    store.set('acme', { stage: 'shadow' })
    // The hanging question gets its answer late, from before the change. After that the next answer does not count, and the store is asked
    // again.
    await pass(1_000)
    store.answer('then')
    await pass(0)
    expect(await write()).toBe('v3 v3 nothing')
    store.mode = 'up'
    store.answer('now')
    await pass(0)
    expect(await write()).toBe('v2 shadow keys')
  })

  it('sees the change within two seconds if a connection never answers', async () => {
    const { store, pass, write } = await startInstance({ file: fileStage('v3') })
    store.mode = 'hung'
    await pass(500)
    store.set('acme', { stage: 'shadow' })
    store.mode = 'up'
    await pass(1_000)
    expect(await write()).toBe('v2 shadow keys')
  })

  it('lets V3 writes under way end on V3 and reports their number', async () => {
    const { store, pass, begin } = await startInstance({ file: fileStage('v3') })
    const underWay = await begin()
    store.set('acme', { stage: 'shadow' })
    await pass(1_000)
    expect(store.said(1, 'acme')).toMatchObject({ revision: 1, writesV3: 1 })
    underWay.release()
    await pass(500)
    expect(store.said(1, 'acme')).toMatchObject({ revision: 1, writesV3: 0 })
  })
})

describe('an instance with a stale view', () => {
  const served: readonly Stage[] = ['canary', 'v3', 'complete']
  it.each(served)('refuses writes and serves reads at %s', async (stage) => {
    const { store, pass, begin, read, log } = await startInstance({ file: fileStage('legacy') })
    store.set('acme', { stage, percent: 100 })
    await pass(500)
    store.mode = 'down'
    await pass(LEASE_MS - 1_000)
    expect(await read()).toMatch(/^v3/)
    await pass(1_500)
    const followed = follow(begin())
    await pass(1_900)
    expect(followed.outcome).toBe('waits')
    await pass(200)
    expect([followed.outcome, await read()]).toEqual(['ADP_STAGE_UNKNOWN', `v3 ${stage} nothing`])
    expect(log).toContain('stagesStale {}')
    store.mode = 'up'
    const again = follow(begin())
    await pass(500)
    expect([again.outcome, log.at(-1)]).toEqual([`v3 ${stage} nothing`, 'stagesFresh {}'])
  })

  it('serves legacy without limit, and without waiting while the store is down', async () => {
    const { store, pass, write } = await startInstance()
    await pass(2_000)
    store.mode = 'down'
    await pass(120_000)
    expect(await write()).toBe('v2 legacy nothing')
  })

  it('serves shadow for the resend window only', async () => {
    const { store, pass, write, begin } = await startInstance()
    await pass(2_000)
    store.set('acme', { stage: 'shadow' })
    await pass(2_000)
    store.mode = 'down'
    await pass(59_000)
    expect(await write()).toBe('v2 shadow identity')
    await pass(2_000)
    const followed = follow(begin())
    await pass(2_000)
    expect(followed.outcome).toBe('ADP_STAGE_UNKNOWN')
  })

  it.each(['both', 'wall'] as const)(
    'holds the first write for a fresh read after a pause shown by clock: %s',
    async (clocks) => {
      const { store, pass, pause, begin } = await startInstance({ file: fileStage('v3') })
      await pass(1_000)
      pause(LEASE_MS, clocks)
      store.set('acme', { stage: 'shadow' })
      const followed = follow(begin())
      expect(followed.outcome).toBe('waits')
      await pass(0)
      expect(followed.outcome).toBe('v2 shadow keys')
    },
  )

  it('asks the store before the first write at shadow after a pause', async () => {
    const { store, pass, pause, begin } = await startInstance()
    store.set('acme', { stage: 'shadow' })
    await pass(1_000)
    pause(LEASE_MS)
    store.set('acme', canary(100))
    const followed = follow(begin())
    await pass(0)
    expect(followed.outcome).toBe('v3 canary nothing')
  })

  it('waits for one question only at legacy after a pause if the store hangs', async () => {
    const { store, pass, pause, begin, write } = await startInstance()
    await pass(1_000)
    pause(LEASE_MS)
    store.mode = 'hung'
    const followed = follow(begin())
    await pass(900)
    expect(followed.outcome).toBe('waits')
    await pass(200)
    expect(followed.outcome).toBe('v2 legacy nothing')
    expect(await write()).toBe('v2 legacy nothing')
  })

  it.each(['shadow', 'v3'] as const)(
    'invalidates decisions made at %s before a pause, even if the lease keeps its number',
    async (stage) => {
      const { pass, pause, begin } = await startInstance({ file: fileStage(stage) })
      await pass(1_000)
      const entry = await begin()
      await pass(30_000)
      expect(entry.isCurrent()).toBe(true)
      pause(LEASE_MS)
      expect(entry.isCurrent()).toBe(false)
      await pass(1_000)
      expect([entry.isCurrent(), (await begin()).isCurrent()]).toEqual([false, true])
    },
  )

  it.each([
    ['keeps', 'shadow', true],
    ['does not keep', 'v3', false],
  ] as const)('%s a decision made at %s current while the store is down', async (_what, stage, isCurrent) => {
    const { store, pass, begin } = await startInstance({ file: fileStage(stage) })
    await pass(1_000)
    const entry = await begin()
    store.mode = 'down'
    await pass(20_000)
    expect(entry.isCurrent()).toBe(isCurrent)
    store.mode = 'up'
    await pass(1_000)
    expect(entry.isCurrent()).toBe(false)
  })

  it('holds writes and invalidates decisions without a lease, and after a new one until the store knows it', async () => {
    const instance = await startInstance({ file: fileStage('v3') })
    const { store, pass, begin } = instance
    const entry = await begin()
    expect(entry.isCurrent()).toBe(true)
    instance.lease = undefined
    expect(entry.isCurrent()).toBe(false)
    const followed = follow(begin())
    await pass(500)
    expect(followed.outcome).toBe('waits')
    // With a new number, acknowledgements under the old number are void.
    instance.lease = 2
    await pass(500)
    expect([followed.outcome, entry.isCurrent()]).toEqual(['waits', false])
    store.live.add(2)
    await pass(500)
    expect(followed.outcome).toBe('v3 v3 nothing')
    expect(store.said(2, 'acme')).toMatchObject({ revision: 0 })
  })
})

describe('a write that V2 serves', () => {
  it('needs no entry in the journal at legacy once all instances are drained and all V3 records are settled', async () => {
    const store = new ScriptedStore()
    store.unsettled.add('acme')
    const { write, pass } = await startInstance({ store })
    await pass(5_000)
    expect(await write()).toBe('v2 legacy keys')
    store.unsettled.clear()
    await pass(500)
    expect(await write()).toBe('v2 legacy nothing')
    // The partner stays clean until the revision changes.
    store.unsettled.add('acme')
    await pass(500)
    expect(await write()).toBe('v2 legacy nothing')
  })

  it('needs its keys in the journal while another live instance has not acknowledged the stage or has a V3 write under way', async () => {
    const store = new ScriptedStore()
    const one = await startInstance({ store, number: 1, file: fileStage('v3') })
    const two = await startInstance({ store, number: 2, file: fileStage('v3') })
    const underWay = await two.begin()
    store.set('acme', { stage: 'shadow' })
    await one.pass(3_000)
    expect(await one.write()).toBe('v2 shadow keys')
    await two.pass(3_000)
    await one.pass(3_000)
    expect(await one.write()).toBe('v2 shadow keys')
    underWay.release()
    await two.pass(500)
    await one.pass(1_500)
    // The client may still resend a batch that V3 answered.
    expect(await one.write()).toBe('v2 shadow keys')
    store.nowMs = 60_000
    await one.pass(1_000)
    expect(await one.write()).toBe('v2 shadow identity')
  })

  it('needs its keys in the journal at legacy while a client may resend a batch that V3 answered', async () => {
    const { store, pass, write } = await startInstance()
    store.set('acme', { stage: 'legacy' })
    store.nowMs = 59_999
    await pass(5_000)
    expect(await write()).toBe('v2 legacy keys')
    store.nowMs = 60_000
    await pass(1_000)
    expect(await write()).toBe('v2 legacy nothing')
  })

  it('needs its keys in the journal at canary', async () => {
    const { store, pass, write } = await startInstance()
    store.set('acme', canary(0))
    await pass(5_000)
    expect(await write()).toBe('v2 canary keys')
  })
})

describe('a start from saved stages without the store', () => {
  const keptAt = async (stage: Stage): Promise<string> => {
    const { store, pass, saved } = await startInstance()
    store.set('acme', { stage, percent: 100 })
    store.nowMs = 60_000
    await pass(5_000)
    expect(saved.length).toBeLessThan(5)
    return saved.at(-1) ?? ''
  }
  const storeAt = (stage: Stage) => {
    const store = new ScriptedStore()
    store.set('acme', { stage })
    return store
  }
  const without = async (kept: string | undefined, file = fileStage('v3')) => {
    const store = new ScriptedStore()
    store.mode = 'down'
    return startInstance({ store, file, ...(kept === undefined ? {} : { kept }) })
  }

  it.each([
    ['legacy', 'v2 legacy nothing'],
    ['shadow', 'v2 shadow identity'],
  ] as const)('serves requests at %s', async (stage, expected) => {
    const { write, stages } = await without(await keptAt(stage))
    expect([stages.isReady(), await write()]).toEqual([true, expected])
    expect(stages.describe()).toMatchObject([{ source: 'kept', stage }])
  })

  it.each(['canary', 'v3', 'complete'] as const)('refuses writes at %s', async (stage) => {
    const { begin, pass, read } = await without(await keptAt(stage))
    const followed = follow(begin())
    await pass(2_000)
    expect([followed.outcome, await read()]).toEqual(['ADP_STAGE_UNKNOWN', `v3 ${stage} nothing`])
  })

  it('still holds writes for a change that was acknowledged before', async () => {
    const { store, pass, saved } = await startInstance()
    store.set('acme', { stage: 'shadow' })
    store.propose('acme', canary(100))
    await pass(1_000)
    const { begin, pass: passOn } = await without(saved.at(-1))
    const followed = follow(begin())
    await passOn(15_000)
    expect(followed.outcome).toBe('ADP_STAGE_UNKNOWN')
  })

  it('is not ready and refuses requests if nothing was saved', async () => {
    const { begin, pass, read, stages } = await without(undefined)
    const followed = follow(begin())
    await pass(2_000)
    expect([stages.isReady(), followed.outcome, await read()]).toEqual([
      false,
      'ADP_STAGE_UNKNOWN',
      'ADP_STAGE_UNKNOWN',
    ])
  })

  it('loads the known trail, reports once that the trail does not continue it, and serves the stored stages', async () => {
    const { saved } = await startInstance({ store: storeAt('legacy') })
    const store = storeAt('v3')
    store.isTrailContinued = false
    const { pass, log, write } = await startInstance({ store, kept: saved.at(-1) ?? '' })
    expect(store.known).toEqual({ entries: 1, hash: 'hash 1' })
    await pass(2_000)
    expect(log.filter((line) => line === 'trailDamaged {}')).toHaveLength(1)
    // The instance keeps the last known trail and asks with it again.
    expect(store.known).toEqual({ entries: 1, hash: 'hash 1' })
    expect(await write()).toBe('v3 v3 nothing')
  })

  it.each([
    ['cut off', (text: string) => text.slice(0, -5)],
    ['changed', (text: string) => text.replace('legacy', 'shadow')],
    ['empty', () => ''],
  ])('ignores a saved text that is %s', async (_what, damage) => {
    const { stages } = await without(damage(await keptAt('legacy')))
    expect(stages.isReady()).toBe(false)
  })
})
