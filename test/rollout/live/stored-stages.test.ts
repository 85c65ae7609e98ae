import { describe, expect, it } from 'vitest'

import type { Stage } from '../../../src/rollout/stage.ts'
import { ScriptedStore } from './scripted-store.ts'
import { fileStage, follow, LEASE_MS, startInstance } from './start-instance.ts'

const canary = (percent: number) => ({ stage: 'canary', percent }) as const

describe('createStoredStages', () => {
  it('takes the stage from the configuration file until the store has a stage, and then only from the store', async () => {
    const { store, pass, write, stages, log } = await startInstance({ file: fileStage('v3') })
    expect(await write()).toBe('v3 v3 nothing')
    expect(stages.describe()).toMatchObject([{ stage: 'v3', source: 'file' }])
    // The store still has a percentage from canary, which has no meaning at shadow.
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

it('createStoredStages ignores an answer of the store that arrives after stop', async () => {
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

describe('an instance with a pending change of the stage', () => {
  const begun = async () => {
    const instance = await startInstance()
    instance.store.set('acme', { stage: 'shadow' })
    await instance.pass(500)
    return instance
  }

  it('holds new writes of units that change sides, and counts as drained when the writes in progress have ended', async () => {
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

  it('holds writes during the first change of a partner whose stage comes from the configuration file', async () => {
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

  it('sends held writes to the old side if the change is withdrawn', async () => {
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

  it('ignores a change that no other operator has approved yet', async () => {
    const { store, pass, write } = await begun()
    store.propose('acme', canary(100), true)
    await pass(500)
    expect(await write()).toMatch(/^v2 shadow/)
    expect(store.said(1, 'acme')?.pendingRevision).toBeUndefined()
  })

  it('refuses held writes if it does not learn from the store within 15 seconds that the change has ended', async () => {
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

  it('refuses a write if it already holds the maximum number of writes', async () => {
    const { store, pass, begin } = await startInstance({ options: { maxHeld: 2 } })
    store.set('acme', { stage: 'shadow' })
    store.propose('acme', canary(100))
    await pass(500)
    const all = [follow(begin()), follow(begin()), follow(begin())]
    await pass(0)
    expect(all.map(({ outcome }) => outcome)).toEqual(['waits', 'waits', 'ADP_OVERLOADED'])
  })

  it('refuses the latest write of the partner and unit with the most held writes if it holds too many writes', async () => {
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

  it('does not release held writes when a late answer of the store shows the time before the change', async () => {
    const { store, pass, begin } = await begun()
    store.mode = 'hung'
    // The first read of the stages hangs, so a second read starts beside it. The second read sees the stages before the step below, but its
    // answer arrives after the answer to the first read.
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

  it('after it has acknowledged a step to shadow, requires a journal entry with the identity of each batch at legacy', async () => {
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

  it('before it acknowledges a change, reports that it served writes at legacy while the store was down', async () => {
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

  it('before it acknowledges a change, reports the age of the last unrecorded batch', async () => {
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

  it('before it acknowledges that its writes have drained, reports an unrecorded write at legacy to the store', async () => {
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

  it('before it acknowledges a change, saves the change to its own file', async () => {
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

describe('an instance after an operator has taken the partner back to V2', () => {
  it('sends writes to V2 and releases held writes as soon as it has read the change', async () => {
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

  it('follows the change within two seconds if the store answers late', async () => {
    const { store, pass, write } = await startInstance({ file: fileStage('v3') })
    store.mode = 'hung'
    await pass(500)
    store.set('acme', { stage: 'shadow' })
    // The first read gets a late answer with the stages from before the change. The instance follows the change once a later read is
    // answered.
    await pass(1_000)
    store.answer('then')
    await pass(0)
    expect(await write()).toBe('v3 v3 nothing')
    store.mode = 'up'
    store.answer('now')
    await pass(0)
    expect(await write()).toBe('v2 shadow keys')
  })

  it('follows the change within two seconds if one connection to the store is stuck', async () => {
    const { store, pass, write } = await startInstance({ file: fileStage('v3') })
    store.mode = 'hung'
    await pass(500)
    store.set('acme', { stage: 'shadow' })
    store.mode = 'up'
    await pass(1_000)
    expect(await write()).toBe('v2 shadow keys')
  })

  it('lets writes in progress on V3 finish there, and reports how many there are', async () => {
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

describe('an instance with a stale view of the stages', () => {
  const served: readonly Stage[] = ['canary', 'v3', 'complete']
  it.each(served)('refuses writes and serves reads at %s while the store is down', async (stage) => {
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

  it('serves writes at legacy at once, for as long as the store is down', async () => {
    const { store, pass, write } = await startInstance()
    await pass(2_000)
    store.mode = 'down'
    await pass(120_000)
    expect(await write()).toBe('v2 legacy nothing')
  })

  it('serves writes at shadow for only one resend window while the store is down', async () => {
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
    'holds the first write after a pause of the process until it has read the stages again (clocks that advanced: %s)',
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

  it('after a pause of the process, reads the stages again before the first write at shadow', async () => {
    const { store, pass, pause, begin } = await startInstance()
    store.set('acme', { stage: 'shadow' })
    await pass(1_000)
    pause(LEASE_MS)
    store.set('acme', canary(100))
    const followed = follow(begin())
    await pass(0)
    expect(followed.outcome).toBe('v3 canary nothing')
  })

  it('at legacy, waits only about one second for a store that hangs after a pause of the process', async () => {
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
    'invalidates decisions at %s from before a pause of the process, even if the lease is still valid',
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

  it('invalidates a decision at shadow after a pause of the process that exceeds the resend window, even if the store does not answer', async () => {
    const { store, pass, pause, begin } = await startInstance({ file: fileStage('shadow') })
    await pass(1_000)
    const entry = await begin()
    store.mode = 'hung'
    // The instance has not read the stages since the pause, during which an operator may have taken the partner to canary.
    pause(61_000)
    await pass(3_000)
    expect(entry.isCurrent()).toBe(false)
  })

  it.each([
    ['keeps', 'shadow', true],
    ['invalidates', 'v3', false],
  ] as const)('%s a decision at %s while the store is down', async (_what, stage, isCurrent) => {
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

  it('holds writes and invalidates decisions while it has no lease, or a new lease that the store does not list yet', async () => {
    const instance = await startInstance({ file: fileStage('v3') })
    const { store, pass, begin } = instance
    const entry = await begin()
    expect(entry.isCurrent()).toBe(true)
    instance.lease = undefined
    expect(entry.isCurrent()).toBe(false)
    const followed = follow(begin())
    await pass(500)
    expect(followed.outcome).toBe('waits')
    // Acknowledgements under the number of the old lease no longer count.
    instance.lease = 2
    await pass(500)
    expect([followed.outcome, entry.isCurrent()]).toEqual(['waits', false])
    store.live.add(2)
    await pass(500)
    expect(followed.outcome).toBe('v3 v3 nothing')
    expect(store.said(2, 'acme')).toMatchObject({ revision: 0 })
  })
})

describe('a write that an instance sends to V2', () => {
  it('needs no journal entry at legacy once all instances have drained and all records for V3 are settled', async () => {
    const store = new ScriptedStore()
    store.unsettled.add('acme')
    const { write, pass } = await startInstance({ store })
    await pass(5_000)
    expect(await write()).toBe('v2 legacy keys')
    store.unsettled.clear()
    await pass(500)
    expect(await write()).toBe('v2 legacy nothing')
    // The instance does not check the unsettled records again until the revision changes.
    store.unsettled.add('acme')
    await pass(500)
    expect(await write()).toBe('v2 legacy nothing')
  })

  it('at shadow must be stored in the journal with the keys of its records until all live instances have ended their V3 writes', async () => {
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

  it('at legacy must be stored in the journal with the keys of its records while a client may resend a batch that V3 answered', async () => {
    const { store, pass, write } = await startInstance()
    store.set('acme', { stage: 'legacy' })
    store.nowMs = 59_999
    await pass(5_000)
    expect(await write()).toBe('v2 legacy keys')
    store.nowMs = 60_000
    await pass(1_000)
    expect(await write()).toBe('v2 legacy nothing')
  })

  it('at canary must be stored in the journal with the keys of its records', async () => {
    const { store, pass, write } = await startInstance()
    store.set('acme', canary(0))
    await pass(5_000)
    expect(await write()).toBe('v2 canary keys')
  })
})

describe('an instance after a restart', () => {
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
  ] as const)('serves writes at the saved stage %s while the store is down', async (stage, expected) => {
    const { write, stages } = await without(await keptAt(stage))
    expect([stages.isReady(), await write()]).toEqual([true, expected])
    expect(stages.describe()).toMatchObject([{ source: 'kept', stage }])
  })

  it.each(['canary', 'v3', 'complete'] as const)(
    'refuses writes and serves reads at the saved stage %s while the store is down',
    async (stage) => {
      const { begin, pass, read } = await without(await keptAt(stage))
      const followed = follow(begin())
      await pass(2_000)
      expect([followed.outcome, await read()]).toEqual(['ADP_STAGE_UNKNOWN', `v3 ${stage} nothing`])
    },
  )

  it('still holds writes for a change that it acknowledged before the restart', async () => {
    const { store, pass, saved } = await startInstance()
    store.set('acme', { stage: 'shadow' })
    store.propose('acme', canary(100))
    await pass(1_000)
    const { begin, pass: passOn } = await without(saved.at(-1))
    const followed = follow(begin())
    await passOn(15_000)
    expect(followed.outcome).toBe('ADP_STAGE_UNKNOWN')
  })

  it('is not ready, and refuses requests, if it saved no stages and the store is down', async () => {
    const { begin, pass, read, stages } = await without(undefined)
    const followed = follow(begin())
    await pass(2_000)
    expect([stages.isReady(), followed.outcome, await read()]).toEqual([
      false,
      'ADP_STAGE_UNKNOWN',
      'ADP_STAGE_UNKNOWN',
    ])
  })

  it('follows the store if the audit trail of the store does not continue the saved trail, and reports this once', async () => {
    const { saved } = await startInstance({ store: storeAt('legacy') })
    const store = storeAt('v3')
    store.isTrailContinued = false
    const { pass, log, write } = await startInstance({ store, kept: saved.at(-1) ?? '' })
    expect(store.known).toEqual({ entries: 1, hash: 'hash 1' })
    await pass(2_000)
    expect(log.filter((line) => line === 'trailDamaged {}')).toHaveLength(1)
    // The instance keeps the saved trail and sends it with the next read.
    expect(store.known).toEqual({ entries: 1, hash: 'hash 1' })
    expect(await write()).toBe('v3 v3 nothing')
  })

  it.each([
    ['cut off', (text: string) => text.slice(0, -5)],
    ['changed', (text: string) => text.replace('legacy', 'shadow')],
    ['empty', () => ''],
  ])('ignores saved stages if their text is %s', async (_what, damage) => {
    const { stages } = await without(damage(await keptAt('legacy')))
    expect(stages.isReady()).toBe(false)
  })
})
