import { describe, expect, it } from 'vitest'

import { verdictOnly } from '../../../src/compare/diff/findings.ts'
import type { SideAnswer } from '../../../src/compare/live/ask-sides.ts'
import { type FollowedMark, followMarks, type FollowResult } from '../../../src/compare/live/follow-marks.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const markOf = (learner: string, event = 'e1'): FollowedMark => ({
  learner,
  event,
  sent: {},
  mark: { Learner: learner, AttendableEvent: event, MinutesLate: 5 },
  place: { isCorrection: false, isSuperseded: () => false },
})

/** Returns an answer with these marks. */
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
  /** The number of calls to the service that served the write. */
  readonly askedServing: number
}

interface Choices {
  readonly stopMs?: number
  readonly callMs?: number
  /** The answers of the service that served the write. */
  readonly serving?: readonly SideAnswer[]
  readonly storedWithinMs?: number
  readonly isCorrection?: boolean
}

/** Follows marks for 3 s. Each call returns the next answer, and the last answer repeats. */
async function follow(
  marks: readonly FollowedMark[],
  answers: readonly SideAnswer[],
  { stopMs = Infinity, callMs = 0, serving = [], storedWithinMs = 0, isCorrection = true }: Choices = {},
): Promise<Followed> {
  const clock = createManualClock()
  const stop = new AbortController()
  const askedMs: number[] = []
  let askedServing = 0
  if (stopMs < Infinity) clock.after(stopMs, () => stop.abort())
  const following = followMarks(marks, {
    ask: async () => {
      const answer = answers[Math.min(askedMs.length, answers.length - 1)] ?? silence
      askedMs.push(clock.nowMs())
      if (callMs > 0) await new Promise<void>((resolve) => clock.after(callMs, resolve))
      return answer
    },
    serving: {
      ask: () => {
        askedServing += 1
        return Promise.resolve(serving[Math.min(askedServing, serving.length) - 1] ?? silence)
      },
      receivedMs: 0,
      storedWithinMs,
      isCorrection: () => isCorrection,
    },
    compare: ({ mark }, seen) => {
      if (seen === undefined) return verdictOnly('onlyV2')
      const isSame = ['ExternalID', 'RecordedOn', 'MinutesLate'].every((name) => seen[name] === mark[name])
      return verdictOnly(isSame ? 'same' : 'differs')
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
  return { result, verdicts, askedMs, askedServing }
}

describe('followMarks', () => {
  const [ann, ben, cas] = [markOf('ann'), markOf('ben'), markOf('cas', 'e2')]

  it('reports a mark as missing or different only after the replication window has ended', async () => {
    const { verdicts, result, askedMs } = await follow([ann, ben], [shows(), shows(ann), shows(late(ben))])
    expect(verdicts).toEqual({ ann: 'same', ben: 'differs' })
    expect(result).toMatchObject({ delaysMs: [500], skipped: undefined })
    expect(askedMs).toEqual([0, 500, 1_500, 3_000])
    expect((await follow([ann], [shows()])).verdicts).toEqual({ ann: 'onlyV2' })
  })

  it('reports marks as unknown if no further call is allowed at the end of the replication window', async () => {
    for (const reason of ['silence', 'pace'] as const) {
      const { verdicts, result } = await follow([ann, ben], [shows(late(ann)), { kind: 'unsent', reason }])
      expect(verdicts).toEqual({ ann: 'unknown', ben: 'unknown' })
      expect(result.compared[0]?.comparison.differences).toEqual([])
      expect(result.skipped).toBeUndefined()
    }
    // A mark that was already found keeps its verdict.
    expect((await follow([ann, ben], [shows(ann), silence])).verdicts).toEqual({
      ann: 'same',
      ben: 'unknown',
    })
    expect((await follow([ann], [silence])).result).toMatchObject({ compared: [], skipped: 'silence' })
  })

  it('reports marks as unknown and makes no more calls if the adapter stops early', async () => {
    const { verdicts, askedMs } = await follow([ann], [shows()], { stopMs: 700 })
    expect(verdicts).toEqual({ ann: 'unknown' })
    expect(askedMs).toEqual([0, 500])
  })

  it('reports a mark as unknown if the last read of its event fails, even if the read of another event succeeds', async () => {
    // Two events take two calls in each of four rounds, so the eighth call is the last read of the second event.
    const answers = [...Array.from({ length: 7 }, () => shows()), silence]
    expect((await follow([ann, cas], answers)).verdicts).toEqual({ ann: 'onlyV2', cas: 'unknown' })
  })

  it('reads once more if the last read began before the end of the replication window', async () => {
    const { verdicts, askedMs } = await follow([ann], [shows(), shows(ann)], { callMs: 4_000 })
    expect(verdicts).toEqual({ ann: 'same' })
    expect(askedMs).toEqual([0, 4_000])
  })
})

describe('followMarks, if another instance wrote a newer mark', () => {
  const id = '00000000-0000-4000-8000-000000000001'
  const otherId = '00000000-0000-4000-8000-000000000002'
  const of = (fields: object): FollowedMark => {
    const plain = markOf('ann')
    return {
      ...plain,
      mark: { ...plain.mark, ExternalID: id, RecordedOn: '2026-06-10T10:00:00Z', ...fields },
    }
  }
  const ann = of({})
  const corrected = of({ RecordedOn: '2026-06-10T10:00:02.5Z', MinutesLate: 9 })
  const again = of({ RecordedOn: '2026-06-10T10:00:03Z', MinutesLate: 12 })

  it.each<[string, { other: readonly FollowedMark[]; serving: readonly FollowedMark[] } & Omit<Choices, 'serving'>, string]>([
    ['only the compared service shows the first mark and both services show the newer mark', { other: [ann, corrected], serving: [corrected] }, 'same'],
    ['both services show the newer mark', { other: [corrected], serving: [corrected] }, 'unknown'],
    ['the compared service shows an older mark', { other: [of({ RecordedOn: '2026-06-10T09:59:00Z', MinutesLate: 1 })], serving: [corrected] }, 'differs'],
    ['only the compared service shows the newer mark', { other: [corrected], serving: [ann] }, 'differs'],
    ['the compared service shows the newer mark with a time one hour later', { other: [of({ RecordedOn: '2026-06-10T11:00:02Z', MinutesLate: 9 })], serving: [corrected] }, 'differs'],
    ['both services show a mark from the future', { other: [of({ RecordedOn: '2026-06-10T11:00:00Z' })], serving: [of({ RecordedOn: '2026-06-10T11:00:00Z' })] }, 'differs'],
    ['the services show the newer mark with different content', { other: [of({ ...corrected.mark, MinutesLate: 8 })], serving: [corrected] }, 'unknown'],
    ['both services show a newer mark within the precision of its time', { other: [of({ RecordedOn: '2026-06-10T10:00:00.3Z', MinutesLate: 9 })], serving: [of({ RecordedOn: '2026-06-10T10:00:00.3Z', MinutesLate: 9 })] }, 'differs'],
    ['both services show a mark with another id and the same time', { other: [of({ ExternalID: otherId })], serving: [of({ ExternalID: otherId })] }, 'differs'],
    ['both services show a mark with another id and without a time', { other: [of({ ExternalID: otherId, RecordedOn: null })], serving: [of({ ExternalID: otherId, RecordedOn: null })] }, 'unknown'],
    ['a third mark arrives between the reads of both services', { other: [corrected], serving: [again] }, 'unknown'],
    ['the service may have stored the first mark as late as the time of the newer mark', { other: [corrected], serving: [corrected], storedWithinMs: 2_600 }, 'differs'],
    ['the newer mark cannot be a correction because V3 never receives the same content twice', { other: [corrected], serving: [corrected], isCorrection: false }, 'differs'],
  ])('returns the verdict "$2" if %s', async (_case, { other, serving, ...choices }, expected) => {
    // The newer mark is visible only after it may have been recorded, which excludes the first reads.
    const answers = [shows(), shows(), shows(), ...other.map((mark) => shows(mark))]
    const { verdicts, result } = await follow([ann], answers, { ...choices, serving: serving.map((mark) => shows(mark)) })
    expect(verdicts).toEqual({ ann: expected })
    expect(result.skipped).toBeUndefined()
  }) // prettier-ignore

  it('reports a difference if the reply shows no record that would help to recognise a newer mark', async () => {
    const bare = markOf('ann')
    const { verdicts, askedServing } = await follow([bare], [shows(corrected)], {
      serving: [shows(corrected)],
    })
    expect(verdicts).toEqual({ ann: 'differs' })
    expect(askedServing).toBe(0)
  })

  it('reports marks as unknown if the service that served the write cannot be read', async () => {
    for (const serving of [silence, { kind: 'unknown' }] as const) {
      const { verdicts } = await follow([ann], [shows(), shows(), shows(), shows(corrected)], {
        serving: [serving],
      })
      expect(verdicts).toEqual({ ann: 'unknown' })
    }
  })

  it('makes no call to the service that served the write if no newer mark is visible', async () => {
    const { askedServing } = await follow([ann], [shows(late(ann))])
    expect(askedServing).toBe(0)
  })
})
