import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import { addWindow } from '../../../src/rollout/guards/add-window.ts'
import { describeAlarm } from '../../../src/rollout/guards/describe-alarm.ts'
import { type Evidence, evidenceOf, noEvidence } from '../../../src/rollout/guards/evidence.ts'
import { guardKindNames, guardKinds } from '../../../src/rollout/guards/guard-kinds.ts'
import { type GuardVerdict, judge } from '../../../src/rollout/guards/judge.ts'
import { createLiveGuards, readEvidence } from '../../../src/rollout/guards/live-guards.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { serve } from '../store/open-stores.ts'
import { createRandom, WINDOW_MS } from './simulate.ts'

const settings = { action: 'back', coolDownMs: 900_000 } as const

/** Windows with a comparison of each school, until an alarm or the end. */
function compareUntil(
  schools: number,
  share: (school: number) => number,
  windows: number,
  seed: number,
): { readonly verdict: GuardVerdict; readonly windows: number; readonly evidence: Evidence } {
  const random = createRandom(seed)
  let evidence = noEvidence
  let verdict = judge(evidence, settings, 0)
  let done = 0
  while (done < windows && verdict.verdict !== 'alarm') {
    done += 1
    const trials = Array.from({ length: schools }, (_, school) => ({
      unit: `school ${school}`,
      side: 'v3' as const,
      stratum: 1,
      bad: { mismatch: random() < share(school) },
    }))
    // `canary`: V2 serves others meanwhile, which says nothing of marks on V3.
    evidence = addWindow(evidence, { endMs: done * WINDOW_MS, trials }, true)
    verdict = judge(evidence, settings, done * WINDOW_MS)
  }
  return { verdict, windows: done, evidence }
}

describe('guards over what comparison finds', () => {
  it('share one probability of a false alarm with all kinds', () => {
    const shares = guardKindNames.map((kind) => guardKinds[kind].alphaShare)
    expect(shares.reduce((sum, share) => sum + share, 0)).toBeLessThanOrEqual(1 + 1e-12)
  })

  it.each([0.05, 0.1, 0.5, 1])(
    'hold, and never go back, once %f of the comparisons find a difference',
    (share) => {
      for (let seed = 1; seed <= 10; seed++) {
        const { verdict, windows } = compareUntil(12, () => share, 400, seed)
        expect(verdict).toMatchObject({
          verdict: 'alarm',
          kind: 'mismatch',
          test: 'alone',
          action: 'hold',
          heldBecause: 'noControl',
        })
        // 12 comparisons a window.
        expect(windows).toBeLessThan(share === 0.05 ? 250 : 40)
      }
    },
  )

  it('hold for a school that alone differs, with its name', () => {
    const { verdict } = compareUntil(12, (school) => (school === 3 ? 0.9 : 0), 400, 1)
    expect(verdict).toMatchObject({ kind: 'mismatch', test: 'units', unit: 'school 3', action: 'hold' })
    expect(verdict.verdict === 'alarm' && describeAlarm(verdict)).toMatch(
      /^School school 3 has far more marks that V2 has otherwise than all others \(\d+ of \d+ counted comparisons of what V3 served\)\.$/,
    )
  })

  it('stay quiet for as long as there are no more differences than are tolerated', () => {
    for (let seed = 1; seed <= 60; seed++) {
      const { verdict } = compareUntil(8, () => 0.018, 400, seed)
      expect(verdict.verdict).not.toBe('alarm')
    }
  })

  it('change nothing of the other kinds', () => {
    const { evidence } = compareUntil(12, () => 1, 50, 1)
    for (const kind of guardKindNames.filter((name) => name !== 'mismatch'))
      expect(evidenceOf(evidence, kind)).toEqual(evidenceOf(noEvidence, kind))
  })
})

describe('guards while the adapter runs', () => {
  it('hold a partner whose comparisons differ, by the time at which they end', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'mismatch-'))
    const { store } = await serve(`sqlite:${join(folder, 'journal.db')}`)
    const clock = createManualClock()
    let nowMs = 0
    const acts: string[] = []
    const guards = createLiveGuards({
      store,
      settings,
      clock,
      nowMs: () => nowMs,
      goBack: async (partner) => {
        acts.push(`goes back: ${partner}`)
        return 'applied'
      },
      onAct: (partner, { action, kind, test }, alarm) =>
        void acts.push(`${action}: ${partner} ${kind} ${test}: ${describeAlarm(alarm)}`),
      onWindows: (_partner, windows) => expect(windows).toEqual([]),
      onFailure: (_partner, code) => acts.push(code),
    })
    guards.start()
    const partner = { partner: 'acme', revision: 4, records: 30 } as const
    for (let window = 0; window < 10; window++) {
      for (let school = 0; school < 8; school++) {
        const unit = `school ${school}`
        guards.compared({ ...partner, unit, stage: 'v3', mismatch: true })
        // The second of a school in a window does not count, and neither does an earlier stage.
        guards.compared({ ...partner, unit, stage: 'v3', mismatch: false })
        guards.compared({ ...partner, unit, stage: 'shadow', mismatch: false })
        guards.compared({ ...partner, unit: 'another', stage: 'canary', revision: 3, mismatch: false })
      }
      nowMs += WINDOW_MS
    }
    await clock.pass(1_000)
    await guards.stop()
    expect(acts).toEqual([
      'hold: acme mismatch alone: Comparison found more marks that V2 has otherwise than is tolerated (80 of 80 counted comparisons of what V3 served).',
    ])
    expect((await readEvidence(store, 'acme')).lastAct).toMatchObject({ action: 'hold', kind: 'mismatch' })
  })
})
