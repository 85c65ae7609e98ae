import { describe, expect, it } from 'vitest'

import { afterAct, type Evidence, noEvidence } from '../../../src/rollout/guards/evidence.ts'
import { formatEvidence, parseEvidence } from '../../../src/rollout/guards/evidence-note.ts'
import { createRandom, simulate } from './simulate.ts'

const schools = Array.from({ length: 60 }, (_, index) => ({
  name: index === 0 ? '__proto__' : `school ${index}`,
  side: index < 50 ? ('v3' as const) : ('v2' as const),
  batches: 1,
  records: 5,
}))
const { evidence } = simulate(
  schools,
  () => ({ unknown: 0.02, serverError: 0.03, refused: 0.05 }),
  createRandom(1),
  ({ windows }) => windows >= 300,
)

describe('evidence as a stored text', () => {
  it('is what was stored, and stays as small with any number of units', () => {
    const act = { action: 'hold', atMs: 5, kind: 'refused', test: 'units', unit: 'school 1' } as const
    for (const one of [
      noEvidence,
      evidence,
      afterAct(evidence, act),
      afterAct(evidence, { ...act, action: 'back', unit: undefined }),
    ]) {
      const text = formatEvidence(one)
      expect(formatEvidence(parseEvidence(text))).toBe(text)
      expect(text.length).toBeLessThan(20_000)
    }
    const restored: Evidence = parseEvidence(formatEvidence(evidence))
    expect(restored.kinds.get('unknown')?.control.windows).toBe(
      evidence.kinds.get('unknown')?.control.windows,
    )
  })

  it('never grows by being stored', () => {
    const before = evidence.kinds.get('unknown')?.control.logs ?? []
    const after = parseEvidence(formatEvidence(evidence)).kinds.get('unknown')?.control.logs ?? []
    expect(after.every((log, index) => log <= (before[index] ?? -Infinity))).toBe(true)
  })

  it('is refused when it is damaged, never begun anew', () => {
    const text = formatEvidence(evidence)
    const damaged = [
      '',
      '[]',
      '{}',
      '{"version":2}',
      text.slice(0, -1),
      text.replace('"windows":', '"windows":-'),
      text.replace('"logs":[', '"logs":["x",'),
      text.replace('"revision":0', '"revision":null'),
    ]
    for (const one of damaged)
      expect(() => parseEvidence(one)).toThrow(expect.objectContaining({ code: 'ADP_JOURNAL_DAMAGED' }))
  })
})
