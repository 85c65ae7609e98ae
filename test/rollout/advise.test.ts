import { describe, expect, it } from 'vitest'

import { advise, type AdviceInput, nextStep } from '../../src/rollout/advise.ts'
import { noEvidence, noRecent } from '../../src/rollout/guards/evidence.ts'
import { judge } from '../../src/rollout/guards/judge.ts'

const HOUR_MS = 3_600_000
const nowMs = 100 * 24 * HOUR_MS
const guards = judge(noEvidence)
const enough = { records: 5_000, batches: 300, schools: 12, codes: ['/', 'N', 'L', 'I', 'C'] }

/** A partner at `canary` that may go on. */
const ready: AdviceInput = {
  partner: 'acme',
  setting: { stage: 'canary', percent: 20 },
  target: { stage: 'v3', percent: 100 },
  nowMs,
  stageSinceMs: nowMs - 7 * 24 * HOUR_MS,
  seen: { v2: enough, v3: enough },
  unreadable: 0,
  guards: { verdict: 'ok' },
  coolDown: undefined,
  lastUnrecordedMs: undefined,
  lost: [],
  resendWindowMs: 900_000,
  credentials: 'accepted',
  load: { peakRecordsPerSecond: 4, callsPerSecond: 5, recordsPerCall: 1 },
  unacknowledged: [],
  pending: false,
  comparison: undefined,
}

describe('advice', () => {
  it('is ready with evidence', () => {
    expect(advise(ready)).toEqual({
      verdict: 'ready',
      missing: [],
      figures: {
        daysAtStage: 7,
        records: 5_000,
        batches: 300,
        schools: 12,
        codes: 5,
        codesOnV2Only: [],
        peakRecordsPerSecond: 4,
        allowedRecordsPerSecond: 5,
        comparison: undefined,
      },
    })
  })

  it.each<[string, Partial<AdviceInput>, string, string]>([
    [
      'few records',
      { seen: { v2: enough, v3: { ...enough, records: 999 } } },
      'inconclusive',
      '999 of 1000 distinct records were seen on V3.',
    ],
    [
      'few batches',
      { seen: { v2: enough, v3: { ...enough, batches: 9 } } },
      'inconclusive',
      '9 of 100 batches were seen on V3.',
    ],
    [
      'few schools',
      { seen: { v2: enough, v3: { ...enough, schools: 1 } } },
      'inconclusive',
      '1 of 3 schools were seen on V3.',
    ],
    [
      'codes that only V2 saw',
      { seen: { v2: { ...enough, codes: ['U', ...enough.codes, 'B'] }, v3: enough } },
      'inconclusive',
      'V2 saw 2 attendance codes that V3 has not seen.',
    ],
    [
      'inconclusive guards',
      { guards },
      'inconclusive',
      'The guards have too few writes of both sides to judge V3.',
    ],
    [
      'few days',
      { stageSinceMs: nowMs - 30 * HOUR_MS },
      'not yet',
      'The partner has been at this stage for 1.2 of 5 days.',
    ],
    [
      'unreadable writes',
      { unreadable: 3 },
      'not yet',
      '3 writes could not be decoded or translated. Once the cause is mended, markbridge rollout set acme canary --restart-evidence --reason <text> begins the evidence anew.',
    ],
    [
      'cool-down',
      { coolDown: { finding: 'V3 does worse.', untilMs: nowMs + 60_001 } },
      'not yet',
      'A guard acted: V3 does worse. No step forward is taken for another 2 min.',
    ],
    [
      'an unrecorded batch',
      { lastUnrecordedMs: nowMs - 600_000 },
      'not yet',
      'A batch may have been relayed to V2 unrecorded, and it may be sent again for another 5 min.',
    ],
    [
      'instances',
      { unacknowledged: ['b'] },
      'not yet',
      'Instances that have not acknowledged the present revision: b.',
    ],
    [
      'a lost instance',
      { lost: [{ instance: 12, host: 'far', pid: 77, leaseUntilMs: nowMs }] },
      'not yet',
      'Instance 12 (far, process 77) was lost and may still send writes to V2: let it reach the journal, or end it and run markbridge rollout dismiss 12.',
    ],
    ['a pending change', { pending: true }, 'not yet', 'Another change of the stage is pending.'],
    [
      'credentials not tried',
      { credentials: 'notTried' },
      'not yet',
      'V3 has not accepted the credentials of this partner yet.',
    ],
    [
      'refused credentials',
      { credentials: 'refused' },
      'blocked',
      'V3 refuses the credentials of this partner.',
    ],
    [
      'a peak beyond what V3 allows',
      { load: { peakRecordsPerSecond: 12.34, callsPerSecond: 5, recordsPerCall: 1 } },
      'blocked',
      'The peak of 12.3 records per second exceeds the 5 that V3 allows: raise v3.callsPerSecond or send batches.',
    ],
  ])('names %s', (_, change, verdict, sentence) => {
    expect(advise({ ...ready, ...change })).toMatchObject({ verdict, missing: [sentence] })
  })

  it('names an alarm with its figures', () => {
    const figures = {
      v3: { ...noRecent.v3, trials: 40, serverError: 20, slow: 1 },
      v2: { ...noRecent.v2, trials: 100 },
    }
    expect(advise({ ...ready, guards: { verdict: 'alarm', figures } }).missing).toEqual([
      'The guards raised an alarm: V3 does worse than V2 at the same time: 21 of 40 counted writes on V3 were bad (20 not applied, 1 slow), 0 of 100 on V2.',
    ])
  })

  it('counts the records of a batch as one call, and of a canary only its share', () => {
    const load = { peakRecordsPerSecond: 40, callsPerSecond: 5, recordsPerCall: 10 }
    expect(advise({ ...ready, load }).verdict).toBe('ready')
    const single = { ...load, recordsPerCall: 1 }
    expect(advise({ ...ready, load: single, target: { stage: 'canary', percent: 10 } }).verdict).toBe('ready')
    expect(advise({ ...ready, load: single, target: { stage: 'canary', percent: 50 } })).toMatchObject({
      verdict: 'blocked',
      missing: [
        'The peak of 20 records per second for 50 % of the units exceeds the 5 that V3 allows: raise v3.callsPerSecond or send batches.',
      ],
    })
    expect(advise({ ...ready, load: { ...load, callsPerSecond: undefined } }).verdict).toBe('ready')
  })

  it('is never ready by time alone', () => {
    const none = { records: 0, batches: 0, schools: 0, codes: [] }
    for (const stage of ['shadow', 'canary', 'v3'] as const) {
      const input = {
        ...ready,
        setting: { stage, percent: 20 },
        stageSinceMs: 0,
        seen: { v2: none, v3: none },
        guards,
      }
      expect(advise(input).verdict).toBe('inconclusive')
    }
  })

  it('judges shadow by what V2 served, and legacy by nothing', () => {
    const none = { records: 0, batches: 0, schools: 0, codes: [] }
    const shadow = {
      ...ready,
      setting: { stage: 'shadow', percent: 0 },
      target: { stage: 'canary', percent: 5 },
      guards,
    } as const
    expect(advise({ ...shadow, seen: { v2: enough, v3: none } }).verdict).toBe('ready')
    const legacy = {
      ...shadow,
      setting: { stage: 'legacy', percent: 0 },
      target: { stage: 'shadow', percent: 0 },
    } as const
    expect(
      advise({ ...legacy, seen: { v2: none, v3: none }, credentials: 'refused', stageSinceMs: nowMs })
        .verdict,
    ).toBe('ready')
  })

  it('asks for no more schools than the partner has', () => {
    const seen = { v2: enough, v3: { ...enough, schools: 1 } }
    expect(advise({ ...ready, seen, knownSchools: 1 }).verdict).toBe('ready')
  })

  it('knows the next step of each stage', () => {
    const steps = (['legacy', 'shadow', 'canary', 'v3', 'complete'] as const).map(
      (stage) => nextStep({ stage })?.stage,
    )
    expect(steps).toEqual(['shadow', 'canary', 'v3', 'complete', undefined])
  })
})
