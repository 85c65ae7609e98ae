import { outcomeOf, type RunDocument } from '../../../src/compare/run-document.ts'
import type { ComparisonDesk, LiveResult } from '../../../src/console/ports.ts'
import { liveRun, readyRun, termRun } from '../../compare/report/sample-runs.ts'
import { MARKUP, NOW_MS } from './sample-data.ts'

export const RUN = 'run-20260327-160000-9f3c'

const runs: readonly RunDocument[] = [
  {
    ...termRun(),
    run: RUN,
    differences: [
      ...termRun().differences,
      { path: MARKUP, kind: 'value', v2Class: MARKUP, v3Class: 'code:present', count: 1 },
    ],
  },
  { ...readyRun(), run: 'run-20260301-160000-0002', endedAt: '2026-03-01T16:10:00Z' },
]

/** Returns a trend of 20 days, over which the differences of acme decrease. Zenith has no differences. */
const trendOf = (partner: string): LiveResult['trend'] =>
  Array.from({ length: 20 }, (_, at) => ({
    day: new Date(NOW_MS - (19 - at) * 86_400_000).toISOString().slice(0, 10),
    compared: 1_200,
    differing: partner === 'zenith' || at === 15 ? 0 : Math.max(5, 60 - at * 3),
  }))

export const sampleComparison: ComparisonDesk = {
  runs: async () => [
    ...runs.map((document) => ({
      run: document.run,
      summary: { ...document, outcome: outcomeOf(document) },
    })),
    { run: 'notes', fault: `it is not valid JSON. ${MARKUP}` },
  ],
  run: async (id) => {
    const found = runs.find(({ run }) => run === id)
    if (found === undefined) throw new TypeError('The page asks for a run that the list does not have.')
    return found
  },
  live: async (wanted) =>
    ['acme', 'zenith']
      .filter((partner) => (wanted ?? partner) === partner)
      .map((partner) => ({
        partner,
        document: { ...liveRun(), run: `live-${partner}-shadow-7`, partner },
        advice: { verdict: 'inconclusive', missing: ['12 of 598 learner-days were compared with V2.'] },
        verdict: 'inconclusive' as const,
        trend: trendOf(partner),
      })),
}
