import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import { codeFingerprint } from '../../../src/rollout/evidence/count-name.ts'
import { MAX_WRITTEN } from '../../../src/rollout/evidence/evidence-store.ts'
import { createEvidenceKeeper } from '../../../src/rollout/evidence/keep-evidence.ts'
import type { KeptEvidence } from '../../../src/rollout/evidence/read-kept.ts'
import {
  createLiveSeen,
  parseNote,
  peakOf,
  seenName,
  type SeenNote,
  seenOf,
  type SeenWrite,
  unreadableOf,
} from '../../../src/rollout/evidence/seen-writes.ts'
import { makeFolder } from '../../journal/open-sqlite.ts'
import { startDuties } from '../../support/start-duties.ts'
import { openEvidence, START_MS } from '../evidence/open-evidence.ts'

/** Starts two instances that share one store. */
async function start() {
  const { store: evidence } = await openEvidence(`sqlite:${join(await makeFolder(), 'journal.db')}`, {
    nowMs: START_MS,
  })
  const texts = new Map<string, string>()
  const failures: string[] = []
  let broken = false
  const store = {
    updateText: (name: string, update: (text: string | undefined) => string) => {
      if (broken) return Promise.reject(new Error('gone'))
      texts.set(name, update(texts.get(name)))
      return Promise.resolve(texts.get(name) ?? '')
    },
  }
  const open = () => {
    const keeper = createEvidenceKeeper({ store: evidence, onKept: () => expect.fail() })
    const seen = createLiveSeen({ evidence: keeper, store })
    const duties = startDuties([...seen.duties, ...keeper.duties])
    const stop = (): Promise<unknown> => duties.stop().then(() => failures.push(...duties.failures))
    return { ...seen, stop }
  }
  return {
    one: open(),
    other: open(),
    failures,
    break: () => (broken = true),
    note: (): SeenNote => parseNote(texts.get(seenName('acme'))),
    kept: async (): Promise<KeptEvidence | undefined> => (await evidence.read('acme'))[0],
  }
}

const scope = { partner: 'acme', stage: 'canary', revision: 4 } as const
const write = (from: number, count: number, given: Partial<SeenWrite> = {}): SeenWrite => ({
  ...{ ...scope, side: 'v2', unit: 'school-1', receivedMs: 60_000 },
  records: () =>
    Array.from({ length: count }, (_, index) => ({
      ...{ key: `key ${from + index}`, code: 'N', hasOutcome: true },
    })),
  ...given,
})

describe('createLiveSeen', () => {
  it('adds up the writes of all instances, and counts each record and each school once', async () => {
    const { one, other, note, kept } = await start()
    one.recordWrite(write(0, 20))
    other.recordWrite(write(10, 20, { unit: 'school-2' }))
    const records = [
      { key: 'a', code: 'L', hasOutcome: true },
      { key: undefined, code: undefined, hasOutcome: true },
    ]
    const failed = { key: 'b', code: 'N', hasOutcome: false }
    other.recordWrite(write(0, 3, { side: 'v3', records: () => [...records, failed] }))
    other.recordWrite(write(0, 1, { side: 'v3', records: () => [failed] }))
    one.recordUnreadable(scope)
    one.recordCredentials('acme', 'accepted')
    await Promise.all([one.stop(), other.stop()])
    const found = await kept()
    expect({ v2: seenOf(found, 'v2'), v3: seenOf(found, 'v3'), unreadable: unreadableOf(found) }).toEqual({
      v2: { batches: 2, records: 30, schools: 2, codes: [codeFingerprint('N')] },
      v3: { batches: 1, records: 1, schools: 1, codes: [codeFingerprint('L')] },
      unreadable: 1,
    })
    expect([note().credentials, peakOf(note())]).toEqual(['accepted', 44])
    expect([...(found?.counts.keys() ?? [])].join()).not.toMatch(/key 1|school-1/)
  })

  it('restarts the counts at a new revision of the stage, but keeps the peak load and whether V3 accepted the credentials', async () => {
    const { one, other, note, kept } = await start()
    one.recordWrite(write(0, 50))
    one.recordCredentials('acme', 'refused')
    await one.stop()
    other.recordWrite(write(0, 5, { revision: 5, receivedMs: 600_000 }))
    other.recordWrite(write(0, 7))
    await other.stop()
    const found = await kept()
    expect([found?.scope.revision, seenOf(found, 'v2').batches]).toEqual([5, 1])
    expect([note().credentials, peakOf(note())]).toEqual(['refused', 50])
  })

  it('counts at most MAX_WRITTEN records, but every batch', async () => {
    const { one, kept } = await start()
    one.recordWrite(write(0, MAX_WRITTEN))
    one.recordWrite(write(MAX_WRITTEN, 10))
    await one.stop()
    expect(seenOf(await kept(), 'v2')).toMatchObject({ batches: 2, records: MAX_WRITTEN })
  })

  it('reports a failure of the store, and can still be stopped without an error', async () => {
    const { one, failures, break: fail } = await start()
    one.recordWrite(write(0, 1))
    fail()
    await one.stop()
    expect(failures).toEqual(['writes seen: ADP_INTERNAL'])
  })

  it.each(['', '{}', '{"version":9}', '{"credentials":"x","minutes":[],"peakPerMinute":0}'])(
    'treats the damaged stored text %j like a missing text',
    (text) => {
      expect(parseNote(text)).toEqual(parseNote(undefined))
    },
  )
})
