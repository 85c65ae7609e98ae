import { describe, expect, it } from 'vitest'

import { codeFingerprint } from '../../../src/rollout/seen/distinct-count.ts'
import { createLiveSeen, type LiveSeen, type SeenWrite } from '../../../src/rollout/seen/live-seen.ts'
import { figuresOf, parseSeen, peakOf, seenName, type SeenNote } from '../../../src/rollout/seen/seen-note.ts'
import { createManualClock } from '../../support/manual-clock.ts'

/** Two instances on one store of texts. */
function start(count = 2) {
  const texts = new Map<string, string>()
  const clock = createManualClock()
  const failures: string[] = []
  let broken = false
  const store = {
    updateEvidence: (name: string, update: (text: string | undefined) => string) => {
      if (broken) return Promise.reject(new Error('gone'))
      texts.set(name, update(texts.get(name)))
      return Promise.resolve(texts.get(name) ?? '')
    },
  }
  const onFailure = (partner: string, code: string): number => failures.push(`${partner} ${code}`)
  const instances = Array.from({ length: count }, () => createLiveSeen({ store, clock, onFailure }))
  return {
    instances,
    failures,
    break: () => (broken = true),
    note: (): SeenNote => parseSeen(texts.get(seenName('acme'))),
    texts,
  }
}

const write = (from: number, count: number, given: Partial<SeenWrite> = {}): SeenWrite => ({
  partner: 'acme',
  revision: 4,
  side: 'v2',
  unit: 'school-1',
  receivedMs: 60_000,
  records: () => Array.from({ length: count }, (_, index) => ({ key: `key ${from + index}`, code: 'N' })),
  ...given,
})
const stopAll = (instances: readonly LiveSeen[]): Promise<unknown> =>
  Promise.all(instances.map((one) => one.stop()))

describe('what was seen of a partner', () => {
  it('is that of all instances together, each record and school once', async () => {
    const { instances, note, texts } = start()
    const [one, other] = instances
    one?.wrote(write(0, 20))
    other?.wrote(write(10, 20, { unit: 'school-2', side: 'v2' }))
    other?.wrote(
      write(0, 3, {
        side: 'v3',
        records: () => [
          { key: 'a', code: 'L' },
          { key: undefined, code: undefined },
        ],
      }),
    )
    one?.unreadable('acme', 4)
    one?.credentials('acme', 'accepted')
    await stopAll(instances)
    const { sides, unreadable, credentials, revision } = note()
    expect({ v2: figuresOf(sides.v2), v3: figuresOf(sides.v3), unreadable, credentials, revision }).toEqual({
      v2: { batches: 2, records: 30, schools: 2, codes: [codeFingerprint('N')] },
      v3: { batches: 1, records: 1, schools: 1, codes: [codeFingerprint('L')] },
      unreadable: 1,
      credentials: 'accepted',
      revision: 4,
    })
    expect(peakOf(note())).toBe(42)
    expect([...texts.values()].join()).not.toMatch(/key 1|school-1/)
  })

  it('begins anew with another stage or share; the peak and the credentials stay', async () => {
    const { instances, note } = start()
    const [one, other] = instances
    one?.wrote(write(0, 50))
    one?.credentials('acme', 'refused')
    await one?.stop()
    other?.wrote(write(0, 5, { revision: 5, receivedMs: 600_000 }))
    other?.wrote(write(0, 7, { revision: 4 }))
    await other?.stop()
    const { sides, credentials, revision } = note()
    expect({ batches: sides.v2.batches, credentials, revision, peak: peakOf(note()) }).toEqual({
      batches: 1,
      credentials: 'refused',
      revision: 5,
      peak: 50,
    })
  })

  it('is lost where the store fails, and the writes go on', async () => {
    const { instances, failures, break: fail } = start(1)
    instances[0]?.wrote(write(0, 1))
    fail()
    await stopAll(instances)
    expect(failures).toEqual(['acme ADP_INTERNAL'])
  })

  it('keeps no process from its end where the store does not answer', async () => {
    const clock = createManualClock()
    const store = { updateEvidence: () => new Promise<string>(() => undefined) }
    const seen = createLiveSeen({ store, clock, onFailure: () => undefined })
    seen.start()
    seen.wrote(write(0, 1))
    const stopped = seen.stop()
    await clock.pass(1_000)
    await stopped
  })

  it('counts as nothing where its text is damaged', () => {
    expect(parseSeen('{"version":1}').sides.v2.batches).toBe(0)
    expect(parseSeen('no JSON').revision).toBe(0)
  })
})
