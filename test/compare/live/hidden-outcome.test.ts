import { describe, expect, it } from 'vitest'

import type { AskedRead, AskSide, SideAnswer } from '../../../src/compare/live/ask-sides.ts'
import { findHiddenOutcome, toFollowed } from '../../../src/compare/live/check-marks.ts'
import type { AcceptedMark } from '../../../src/compare/live/compare-reply.ts'
import type { FlatMark } from '../../../src/compare/live/marks.ts'
import { partner } from '../../partners/partner.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const receivedMs = Date.parse('2026-03-02T09:00:00Z')
const at = (seconds: number): string => new Date(receivedMs + seconds * 1_000).toISOString()
const code = '0a0a0a0a-0000-4000-8000-000000000001'
const otherCode = '0a0a0a0a-0000-4000-8000-000000000002'

const sent = (learner: string, place: Partial<AcceptedMark['place']> = {}, event = 'e1'): AcceptedMark => ({
  record: {
    ...{ ExternalID: '', RecordedOn: null, ChangeProcessName: null },
    ...{ AttendableEventStart: null, RecordedBy: null, Present: true, Absent: false },
    Attendee: { ExternalID: learner },
    Event: { ExternalID: event },
    AttendanceCode: { ExternalID: code },
    Qualifier: { MinutesLate: null, Comment: 'bus' },
  },
  mark: undefined,
  place: { isCorrection: false, isSuperseded: () => false, ...place },
})

/** A row of V3 for the session of a learner; without a time it has no mark. */
const row = (learner: string, RecordedOn: string | null, fields: object = {}): FlatMark => ({
  ...toFollowed(sent(learner)).mark,
  RecordedOn,
  ...(RecordedOn === null ? { SchoolAttendanceCode: otherCode, Present: false } : {}),
  ...fields,
})
const shows = (...rows: readonly FlatMark[]): SideAnswer => ({
  kind: 'answered',
  status: 200,
  text: JSON.stringify({ value: rows }),
})

const both = (ask: AskSide) => ({ v2: ask, v3: ask })

/** Reads for 30 s, with one answer after the other; the last of them stays. */
async function find(marks: readonly AcceptedMark[], answers: readonly SideAnswer[], stopMs = Infinity) {
  const clock = createManualClock()
  const stop = new AbortController()
  const asked: AskedRead[] = []
  const askedMs: number[] = []
  if (stopMs < Infinity) clock.after(stopMs, () => stop.abort())
  const client = {
    partner: partner('acme', { any: true }),
    client: { authorization: '', subscriptionKey: '' },
    owner: '',
    identity: { owner: '', credentialsHash: '', isNamed: false, school: undefined, expiresMs: undefined },
  }
  const finding = findHiddenOutcome({ client, receivedMs, repliedMs: receivedMs + 200 }, marks, {
    ask: both((read) => {
      const answer = answers[Math.min(asked.length, answers.length - 1)]
      asked.push(read)
      askedMs.push(clock.nowMs())
      if (stop.signal.aborted || answer === undefined)
        return Promise.resolve({ kind: 'unsent', reason: 'stopped' })
      return Promise.resolve(answer)
    }),
    clock,
    stopped: stop.signal,
  })
  await clock.pass(120_000)
  return { outcome: await finding, asked, askedMs }
}

const [ann, ben] = [sent('ann'), sent('ben')]
const free = shows(row('ann', null), row('ben', null))

describe('what V2 did with a batch whose reply shows no outcomes', () => {
  it.each<readonly [string, readonly FlatMark[], string | undefined]>([
    ['a mark that it recorded then', [row('ann', at(0.1))], 'kept'],
    ['also with other minutes and comment', [row('ann', at(0.1), { MinutesLate: 0, Comment: 'b' })], 'kept'],
    ['also beside an older one', [row('ann', at(0.1)), row('ann', at(-3_600), { Present: false })], 'kept'],
    ['one of its marks, where V2 may have refused the other', [row('ann', null), row('ben', at(0))], 'kept'],
    ['sessions without a mark', [row('ann', null), row('ben', null)], 'dropped'],
    ['an older mark of other content', [row('ann', at(-60), { Present: false })], 'dropped'],
    ['the same mark, recorded before', [row('ann', at(-60))], undefined],
    ['the same mark, recorded later', [row('ann', at(60))], undefined],
    ['the same mark, by a clock an hour behind', [row('ann', at(-3_600)), row('ben', at(-3_600))], undefined],
    [
      'the same mark, without a time',
      [row('ann', 'yesterday'), row('ben', '2026-03-02T09:00:00')],
      undefined,
    ],
    ['another mark that came since', [row('ann', at(60), { Present: false })], undefined],
    ['no session of the learner', [], undefined],
  ])('is shown by %s: %s', async (_, rows, expected) => {
    expect((await find([ann, ben], [shows(...rows)])).outcome).toBe(expected)
  })

  it('is read for as long as replication may take, and no longer than until a mark is there', async () => {
    const dropped = await find([ann, ben], [free])
    expect([dropped.outcome, dropped.askedMs]).toEqual(['dropped', [2_000, 6_000, 14_000, 30_000]])
    const late = await find([ann, ben], [free, free, shows(row('ben', at(0)))])
    expect([late.outcome, late.askedMs]).toEqual(['kept', [2_000, 6_000, 14_000]])
  })

  it('is read with one call, and with rows of sessions that have no mark', async () => {
    const many = Array.from({ length: 40 }, (_, index) => sent(`l${index}`))
    const { asked } = await find([...many, sent('ann', {}, 'e2')], [shows(row('l3', at(0)))])
    expect(asked).toHaveLength(1)
    const [{ query, client } = { query: '', client: undefined }] = asked
    expect(decodeURIComponent(query)).toMatch(
      /^\$filter=AttendableEvent eq e1 and \((?:Learner eq l\d+(?: or )?){25}\)$/,
    )
    expect(client?.partner.reads).toMatchObject({ needsRecordedBy: false, unmarkedCodes: [] })
  })

  it('is not known where V3 does not answer, or no call is left', async () => {
    for (const answer of [{ kind: 'unknown' }, { kind: 'unsent', reason: 'silence' }] as const)
      expect((await find([ann], [free, answer])).outcome).toBeUndefined()
    expect((await find([ann], [{ kind: 'answered', status: 400, text: '[]' }])).outcome).toBeUndefined()
    expect((await find([ann], [free], 3_000)).outcome).toBeUndefined()
  })

  it('is not read from marks with another write', async () => {
    const corrected = await find([sent('ann', { isCorrection: true })], [shows(row('ann', at(0)))])
    expect([corrected.outcome, corrected.asked.length]).toEqual([undefined, 0])
    let reads = 0
    const superseded = sent('ann', { isSuperseded: () => (reads += 1) > 1 })
    expect((await find([superseded], [shows(row('ann', at(0)))])).outcome).toBeUndefined()
  })
})
