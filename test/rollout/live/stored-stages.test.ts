import { describe, expect, it } from 'vitest'

import type { Stage } from '../../../src/rollout/stage.ts'
import { ScriptedStore } from './scripted-store.ts'
import { fileStage, follow, LEASE_MS, startInstance } from './start-instance.ts'

const canary = (percent: number) => ({ stage: 'canary', percent }) as const

describe('where a stage comes from', () => {
  it('is the file until the store knows the partner, and the store from then on, whatever a reload says', async () => {
    const { store, pass, write, stages, log } = await startInstance({ file: fileStage('v3') })
    expect(await write()).toBe('v3 v3 nothing')
    expect(stages.describe()).toMatchObject([{ stage: 'v3', source: 'file' }])
    // The share of a canary that is over does not count.
    store.set('acme', { stage: 'shadow', percent: 50 })
    await pass(500)
    expect(await write()).toBe('v2 shadow keys')
    expect(await write('school', fileStage('complete'))).toBe('v2 shadow keys')
    expect(stages.describe()).toMatchObject([{ stage: 'shadow', percent: 0, source: 'store' }])
    expect(log).toEqual([
      'stageChanged {"partner":"acme","from":"v3","to":"shadow","percent":0,"revision":1,"source":"store"}',
    ])
  })

  it('keeps the last known stage of a partner whose row is damaged, as one that is not read any longer', async () => {
    const { store, pass, write, read, begin } = await startInstance()
    store.set('acme', { stage: 'v3' })
    await pass(500)
    store.damaged.add('acme')
    await pass(500)
    const followed = follow(begin())
    await pass(2_000)
    expect([followed.outcome, await read()]).toEqual(['ADP_STAGE_UNKNOWN', 'v3 v3 nothing'])
    store.damaged.clear()
    await pass(500)
    expect(await write()).toBe('v3 v3 nothing')
  })

  it('serves nothing for a partner whose row was damaged before it was ever read', async () => {
    const store = new ScriptedStore()
    store.damaged.add('acme')
    const { read, begin, pass } = await startInstance({ store, file: fileStage('v3') })
    const followed = follow(begin())
    await pass(2_000)
    expect([followed.outcome, await read()]).toEqual(['ADP_STAGE_UNKNOWN', 'ADP_STAGE_UNKNOWN'])
  })
})

it('keeps and acknowledges nothing after its end, whatever the store answers then', async () => {
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

describe('a change that waits for this instance', () => {
  const begun = async () => {
    const instance = await startInstance()
    instance.store.set('acme', { stage: 'shadow' })
    await instance.pass(500)
    return instance
  }

  it('holds new writes whose side it changes, lets those under way end, and acknowledges then', async () => {
    const { store, pass, begin, read } = await begun()
    const underWay = await begin()
    const revision = store.propose('acme', canary(100))
    await pass(500)
    const held = follow(begin())
    expect(await read()).toMatch(/^v2/)
    expect(store.said(1, 'acme')).toMatchObject({ pendingRevision: revision, writesV2: 1, writesV3: 0 })
    underWay.leave()
    underWay.leave()
    await pass(0)
    expect(store.said(1, 'acme')).toMatchObject({ pendingRevision: revision, writesV2: 0, writesV3: 0 })
    expect(held.outcome).toBe('waits')
    store.commit('acme')
    await pass(500)
    expect(held.outcome).toBe('v3 canary nothing')
    expect(store.said(1, 'acme')).toMatchObject({ revision, pendingRevision: undefined })
  })

  it('holds writes also for the first change of a partner, while the file still says where it is', async () => {
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

  it('neither holds nor drains writes of units that stay', async () => {
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

  it('goes on at the old side when the change was withdrawn, and only then', async () => {
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

  it('takes no notice of a change that still waits for an operator', async () => {
    const { store, pass, write } = await begun()
    store.propose('acme', canary(100), true)
    await pass(500)
    expect(await write()).toMatch(/^v2 shadow/)
    expect(store.said(1, 'acme')?.pendingRevision).toBeUndefined()
  })

  it('refuses held writes when the end of the change cannot be read in time, though the change may have expired', async () => {
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

  it('holds a bounded number of writes', async () => {
    const { store, pass, begin } = await startInstance({ options: { maxHeld: 2 } })
    store.set('acme', { stage: 'shadow' })
    store.propose('acme', canary(100))
    await pass(500)
    const all = [follow(begin()), follow(begin()), follow(begin())]
    await pass(0)
    expect(all.map(({ outcome }) => outcome)).toEqual(['waits', 'waits', 'ADP_OVERLOADED'])
  })

  it('of one partner or unit leaves others a place to wait', async () => {
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

  it('is not released by an answer to a question from before the change was seen', async () => {
    const { store, pass, begin } = await begun()
    store.mode = 'hung'
    // Two questions under way together: the first one took too long. The second one is read before, and arrives after it.
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

  it('to shadow has writes known to the journal from its acknowledgement on, before the commit is read', async () => {
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

  it('is not acknowledged before the store knows of writes that were served at a kept legacy, which others may have left', async () => {
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

  it('is not acknowledged before the store knows what V2 was given unrecorded, and how long ago', async () => {
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

  it('is not drained before the store knows of a write that ended after the step to shadow and was let in before', async () => {
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
    write.leave()
    await pass(500)
    expect(store.said(1, 'acme')).toMatchObject({ pendingRevision: revision, writesV2: 0 })
    expect(store.unrecorded.get('acme')).toBeLessThan(600)
  })

  it('is not acknowledged before it is kept', async () => {
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

describe('back', () => {
  it('takes effect with the first read, releases what a change held, and is acknowledged', async () => {
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

  it('is seen within two seconds where the store takes longer than a question may', async () => {
    const { store, pass, write } = await startInstance({ file: fileStage('v3') })
    store.mode = 'hung'
    await pass(500)
    store.set('acme', { stage: 'shadow' })
    // The question that hangs gets its answer late, from before the change; the one after it cannot count then.
    await pass(1_000)
    store.answer('then')
    await pass(0)
    expect(await write()).toBe('v3 v3 nothing')
    store.mode = 'up'
    store.answer('now')
    await pass(0)
    expect(await write()).toBe('v2 shadow keys')
  })

  it('is seen within two seconds where a connection never answers', async () => {
    const { store, pass, write } = await startInstance({ file: fileStage('v3') })
    store.mode = 'hung'
    await pass(500)
    store.set('acme', { stage: 'shadow' })
    store.mode = 'up'
    await pass(1_000)
    expect(await write()).toBe('v2 shadow keys')
  })

  it('leaves writes of V3 under way where they are, and says how many there are', async () => {
    const { store, pass, begin } = await startInstance({ file: fileStage('v3') })
    const underWay = await begin()
    store.set('acme', { stage: 'shadow' })
    await pass(1_000)
    expect(store.said(1, 'acme')).toMatchObject({ revision: 1, writesV3: 1 })
    underWay.leave()
    await pass(500)
    expect(store.said(1, 'acme')).toMatchObject({ revision: 1, writesV3: 0 })
  })
})

describe('a view that is too old', () => {
  const served: readonly Stage[] = ['canary', 'v3', 'complete']
  it.each(served)('at %s: writes are refused, reads go on', async (stage) => {
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

  it('at legacy: goes on without end, and without waiting while the store is known to be down', async () => {
    const { store, pass, write } = await startInstance()
    await pass(2_000)
    store.mode = 'down'
    await pass(120_000)
    expect(await write()).toBe('v2 legacy nothing')
  })

  it('at shadow: goes on for the time in which a batch may be sent again', async () => {
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
    'after a pause that %s clock(s) show: the first write waits for a fresh read',
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

  it('after a pause at shadow: asks the store before the first write, which may be for V3 by now', async () => {
    const { store, pass, pause, begin } = await startInstance()
    store.set('acme', { stage: 'shadow' })
    await pass(1_000)
    pause(LEASE_MS)
    store.set('acme', canary(100))
    const followed = follow(begin())
    await pass(0)
    expect(followed.outcome).toBe('v3 canary nothing')
  })

  it('after a pause at legacy with a store that hangs: waits for one question only', async () => {
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
    'ends what was decided at %s before a pause, though the lease goes on under its number',
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
    ['goes on', 'shadow', true],
    ['does not go on', 'v3', false],
  ] as const)(
    '%s with a write that arrives at %s while the store is lost',
    async (_what, stage, isCurrent) => {
      const { store, pass, begin } = await startInstance({ file: fileStage(stage) })
      await pass(1_000)
      const entry = await begin()
      store.mode = 'down'
      await pass(20_000)
      expect(entry.isCurrent()).toBe(isCurrent)
      store.mode = 'up'
      await pass(1_000)
      expect(entry.isCurrent()).toBe(false)
    },
  )

  it('counts with the lease, not only with its age: without one a write waits, and an entry is not current any longer', async () => {
    const instance = await startInstance({ file: fileStage('v3') })
    const { store, pass, begin } = instance
    const entry = await begin()
    expect(entry.isCurrent()).toBe(true)
    instance.lease = undefined
    expect(entry.isCurrent()).toBe(false)
    const followed = follow(begin())
    await pass(500)
    expect(followed.outcome).toBe('waits')
    // A new number: what was acknowledged under the old one is void.
    instance.lease = 2
    await pass(500)
    expect([followed.outcome, entry.isCurrent()]).toEqual(['waits', false])
    store.live.add(2)
    await pass(500)
    expect(followed.outcome).toBe('v3 v3 nothing')
    expect(store.said(2, 'acme')).toMatchObject({ revision: 0 })
  })
})

describe('what the journal has to know of a write that V2 serves', () => {
  it('is nothing at legacy once every live instance says so and no record of V3 is unsettled', async () => {
    const store = new ScriptedStore()
    store.unsettled.add('acme')
    const { write, pass } = await startInstance({ store })
    await pass(5_000)
    expect(await write()).toBe('v2 legacy keys')
    store.unsettled.clear()
    await pass(500)
    expect(await write()).toBe('v2 legacy nothing')
    // It stays so until the revision changes.
    store.unsettled.add('acme')
    await pass(500)
    expect(await write()).toBe('v2 legacy nothing')
  })

  it('is the keys while another live instance has not acknowledged, or has a write of V3 under way', async () => {
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
    underWay.leave()
    await two.pass(500)
    await one.pass(1_500)
    // A batch that V3 has answered may still come again.
    expect(await one.write()).toBe('v2 shadow keys')
    store.nowMs = 60_000
    await one.pass(1_000)
    expect(await one.write()).toBe('v2 shadow identity')
  })

  it('is the keys at legacy while a batch that V3 has answered may come again', async () => {
    const { store, pass, write } = await startInstance()
    store.set('acme', { stage: 'legacy' })
    store.nowMs = 59_999
    await pass(5_000)
    expect(await write()).toBe('v2 legacy keys')
    store.nowMs = 60_000
    await pass(1_000)
    expect(await write()).toBe('v2 legacy nothing')
  })

  it('is the keys at canary', async () => {
    const { store, pass, write } = await startInstance()
    store.set('acme', canary(0))
    await pass(5_000)
    expect(await write()).toBe('v2 canary keys')
  })
})

describe('what is kept for a start without the store', () => {
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
  ] as const)('serves on at %s', async (stage, expected) => {
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

  it('remembers that a change was acknowledged', async () => {
    const { store, pass, saved } = await startInstance()
    store.set('acme', { stage: 'shadow' })
    store.propose('acme', canary(100))
    await pass(1_000)
    const { begin, pass: passOn } = await without(saved.at(-1))
    const followed = follow(begin())
    await passOn(15_000)
    expect(followed.outcome).toBe('ADP_STAGE_UNKNOWN')
  })

  it('is not ready without any, and answers no request', async () => {
    const { begin, pass, read, stages } = await without(undefined)
    const followed = follow(begin())
    await pass(2_000)
    expect([stages.isReady(), followed.outcome, await read()]).toEqual([
      false,
      'ADP_STAGE_UNKNOWN',
      'ADP_STAGE_UNKNOWN',
    ])
  })

  it('has how far the trail had come, and says once where it is damaged', async () => {
    const { saved } = await startInstance({ store: storeAt('legacy') })
    const store = storeAt('v3')
    store.trailIsSound = false
    const { pass, log, write } = await startInstance({ store, kept: saved.at(-1) ?? '' })
    expect(store.known).toMatchObject({ entries: 1, mac: 'mac 1', revisions: [['acme', 1]] })
    await pass(2_000)
    expect(log.filter((line) => line === 'trailDamaged {}')).toHaveLength(1)
    // What was known last is kept, and asked with again.
    expect(store.known).toMatchObject({ entries: 1, mac: 'mac 1' })
    expect(await write()).toBe('v3 v3 nothing')
  })

  it('does not give a partner the stage of the file where the trail is damaged', async () => {
    const store = new ScriptedStore()
    store.trailIsSound = false
    const { read } = await startInstance({ store, file: fileStage('v3') })
    expect(await read()).toBe('ADP_STAGE_UNKNOWN')
  })

  it.each([
    ['cut off', (text: string) => text.slice(0, -5)],
    ['changed', (text: string) => text.replace('legacy', 'shadow')],
    ['empty', () => ''],
  ])('does not count when it is %s', async (_what, damage) => {
    const { stages } = await without(damage(await keptAt('legacy')))
    expect(stages.isReady()).toBe(false)
  })
})
