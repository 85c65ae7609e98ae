import { describe, expect, it } from 'vitest'

import { afterAct, noEvidence } from '../../../src/rollout/guards/evidence.ts'
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
    for (const one of [noEvidence, evidence, afterAct(evidence, 5)]) {
      const text = formatEvidence(one)
      const restored = parseEvidence(text)
      expect(restored).toEqual(parseEvidence(formatEvidence(restored)))
      expect({ ...restored, logs: 0, without: 0 }).toEqual({ ...one, logs: 0, without: 0 })
      expect(text.length).toBeLessThan(5_000)
    }
    expect(parseEvidence(formatEvidence(evidence)).windows).toBe(evidence.windows)
  })

  it('begins anew after that of a version with several tests', () => {
    const kept = { version: 1, revision: 7, controlSeenMs: 5, kinds: [['unknown', {}]], lastAct: {} }
    expect(parseEvidence(JSON.stringify(kept))).toEqual(noEvidence)
  })

  it('never grows by being stored', () => {
    const before = evidence.logs
    const after = parseEvidence(formatEvidence(evidence)).logs
    expect(after.every((log, index) => log <= (before[index] ?? -Infinity))).toBe(true)
  })

  it('is refused when it is damaged, never begun anew', () => {
    const text = formatEvidence(evidence)
    const damaged = [
      '',
      '[]',
      '{}',
      '{"version":1}',
      '{"version":2}',
      text.slice(0, -1),
      text.replace('"windows":', '"windows":-'),
      text.replace('"logs":[', '"logs":["x",'),
      text.replace('"revision":0', '"revision":null'),
      text.replace('"version":2', '"version":3'),
    ]
    for (const one of damaged)
      expect(() => parseEvidence(one)).toThrow(expect.objectContaining({ code: 'ADP_JOURNAL_DAMAGED' }))
  })
})
