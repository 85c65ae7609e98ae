import { describe, expect, it } from 'vitest'

import type { SideAnswer } from '../../../src/compare/live/ask-sides.ts'
import { plainly } from '../../../src/compare/live/findings.ts'
import { type FollowedMark, followMarks, type FollowResult } from '../../../src/compare/live/follow-marks.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const markOf = (learner: string, event = 'e1'): FollowedMark => ({
  learner,
  event,
  mark: { Learner: learner, AttendableEvent: event, MinutesLate: 5 },
  place: { isCorrection: false, isSuperseded: () => false },
})

/** An answer with these marks. */
const shows = (...marks: readonly FollowedMark[]): SideAnswer => ({
  kind: 'answered',
  status: 200,
  text: JSON.stringify({ value: marks.map(({ mark }) => mark) }),
})
const late = (followed: FollowedMark): FollowedMark => ({
  ...followed,
  mark: { ...followed.mark, MinutesLate: 6 },
})
const silence: SideAnswer = { kind: 'unsent', reason: 'silence' }

interface Followed {
  readonly result: FollowResult
  readonly verdicts: Readonly<Record<string, string>>
  readonly askedMs: readonly number[]
}

/** Follows marks for 3 s, with one answer after the other; the last of them stays. */
async function follow(
  marks: readonly FollowedMark[],
  answers: readonly SideAnswer[],
  { stopMs = Infinity, callMs = 0 } = {},
): Promise<Followed> {
  const clock = createManualClock()
  const stop = new AbortController()
  const askedMs: number[] = []
  if (stopMs < Infinity) clock.after(stopMs, () => stop.abort())
  const following = followMarks(marks, {
    ask: async () => {
      const answer = answers[Math.min(askedMs.length, answers.length - 1)] ?? silence
      askedMs.push(clock.nowMs())
      if (callMs > 0) await new Promise<void>((resolve) => clock.after(callMs, resolve))
      return answer
    },
    compare: ({ mark }, seen) => {
      if (seen === undefined) return plainly('onlyV2')
      return plainly(seen['MinutesLate'] === mark['MinutesLate'] ? 'same' : 'differs')
    },
    clock,
    settleMs: 3_000,
    sinceMs: 0,
    stopped: stop.signal,
  })
  await clock.pass(60_000)
  const result = await following
  const verdicts = Object.fromEntries(
    result.compared.map(({ followed, comparison }) => [followed.learner, comparison.verdict]),
  )
  return { result, verdicts, askedMs }
}

describe('marks that are followed', () => {
  const [ann, ben, cas] = [markOf('ann'), markOf('ben'), markOf('cas', 'e2')]

  it('are found late, or are missing or different once replication has had its time', async () => {
    const { verdicts, result, askedMs } = await follow([ann, ben], [shows(), shows(ann), shows(late(ben))])
    expect(verdicts).toEqual({ ann: 'same', ben: 'differs' })
    expect(result).toMatchObject({ delaysMs: [500], skipped: undefined })
    expect(askedMs).toEqual([0, 500, 1_500, 3_000])
    expect((await follow([ann], [shows()])).verdicts).toEqual({ ann: 'onlyV2' })
  })

  it('are unknown where no call is left before that', async () => {
    for (const reason of ['silence', 'pace'] as const) {
      const { verdicts, result } = await follow([ann, ben], [shows(late(ann)), { kind: 'unsent', reason }])
      expect(verdicts).toEqual({ ann: 'unknown', ben: 'unknown' })
      expect(result.compared[0]?.comparison.differences).toEqual([])
      expect(result.skipped).toBeUndefined()
    }
    // What was found before stays.
    expect((await follow([ann, ben], [shows(ann), silence])).verdicts).toEqual({
      ann: 'same',
      ben: 'unknown',
    })
    expect((await follow([ann], [silence])).result).toMatchObject({ compared: [], skipped: 'silence' })
  })

  it('are unknown where the adapter stops before that, and are not asked for again', async () => {
    const { verdicts, askedMs } = await follow([ann], [shows()], { stopMs: 700 })
    expect(verdicts).toEqual({ ann: 'unknown' })
    expect(askedMs).toEqual([0, 500])
  })

  it('are unknown where only others could be read at the end', async () => {
    // Two events are two calls of each of four rounds.
    const answers = [...Array.from({ length: 7 }, () => shows()), silence]
    expect((await follow([ann, cas], answers)).verdicts).toEqual({ ann: 'onlyV2', cas: 'unknown' })
  })

  it('are read once more where a call that began before the end took longer', async () => {
    const { verdicts, askedMs } = await follow([ann], [shows(), shows(ann)], { callMs: 4_000 })
    expect(verdicts).toEqual({ ann: 'same' })
    expect(askedMs).toEqual([0, 4_000])
  })
})
