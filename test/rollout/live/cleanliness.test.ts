import { expect, it } from 'vitest'

import { afterRead, isClean, type KnownStages, nothingKnown } from '../../../src/rollout/live/known-stages.ts'
import type { Stage } from '../../../src/rollout/stage.ts'
import type { RolloutSnapshot } from '../../../src/rollout/store/read-snapshot.ts'

const RESEND_WINDOW_MS = 900_000
const SINCE_MS = 1_000_000

/** The stage of a partner as an instance reads it, the revision of the stage, and the milliseconds since the stage began. */
type Seen = readonly [stage: Stage, revision: number, sinceMs: number]

/**
 * Reads each stage twice, with all instances drained and all records settled. Returns true if the partner is clean at the last stage, so that
 * V2 can neither overtake nor duplicate a write of V3.
 */
function isCleanAfter(steps: readonly Seen[], before = nothingKnown): boolean {
  let known: KnownStages = before
  for (const [stage, revision, agoMs] of steps) {
    const setting = { stage, percent: 0, always: [], never: [], revision }
    const state = { ...setting, partner: 'acme', sinceMs: SINCE_MS - agoMs, by: 'operator', reason: 'test' }
    const snapshot: RolloutSnapshot = {
      nowMs: SINCE_MS,
      trail: undefined,
      partners: new Map([['acme', { state: revision === 0 ? undefined : state, pending: undefined }]]),
      begins: new Map(),
      settled: new Set(['acme']),
      liveInstances: [1],
      acknowledgements: [
        { instance: 1, partner: 'acme', revision, pendingRevision: undefined, writesV2: 0, writesV3: 0 },
      ],
    }
    const asked = { monotonicMs: 0, wallMs: 0 }
    const partners = [{ id: 'acme', fileStage: setting }]
    const read = { snapshot, asked, lease: 1, partners, resendWindowMs: RESEND_WINDOW_MS }
    known = afterRead(afterRead(known, read), read)
  }
  const [, last] = steps.at(-1) ?? ['legacy', 0, 0]
  return isClean(known, 'acme', last)
}

it.each<[name: string, steps: readonly Seen[], clean: boolean]>([
  ['begins at shadow by the configuration file', [['shadow', 0, 0]], true],
  ['has just come from legacy', [['legacy', 0, 0], ['shadow', 1, 0]], true],
  ['has just come back from V3', [['v3', 1, 5_000], ['shadow', 2, 0]], false],
  ['has just come back from canary', [['canary', 1, 5_000], ['shadow', 2, 0]], false],
  ['came back from V3 before the resend window', [['v3', 1, 0], ['shadow', 2, RESEND_WINDOW_MS]], true],
  ['went on to legacy within the resend window', [['v3', 1, 0], ['shadow', 2, 0], ['legacy', 3, 0]], false],
  ['goes from a clean shadow to legacy', [['shadow', 0, 0], ['legacy', 1, 0]], true],
  ['may have been at V3 between two reads of the stages', [['shadow', 1, RESEND_WINDOW_MS], ['shadow', 3, 0]], false],
  ['is at shadow when the process starts', [['shadow', 4, 0]], false],
])('isClean returns $2 for a partner that %s', (_name, steps, clean) => {
  expect(isCleanAfter(steps)).toBe(clean)
}) // prettier-ignore

it('isClean returns true if an earlier process saved at the same revision that the partner is clean', () => {
  const progress = new Map([['acme', { revision: 4, state: 'clean', isQuiet: true } as const]])
  expect(isCleanAfter([['shadow', 4, 0]], { ...nothingKnown, progress })).toBe(true)
})
