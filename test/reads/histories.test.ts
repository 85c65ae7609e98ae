import { describe, expect, it } from 'vitest'

import { withHistories } from '../../src/reads/histories.ts'
import type { FlatReply } from '../../src/v2/index.ts'
import { guid } from '../support/batch-request.ts'
import { flatMark } from '../support/flat-mark.ts'

const mark = (learner: number, code = 7): FlatReply =>
  flatMark({
    ExternalID: guid(learner),
    Learner: guid(learner),
    AttendableEvent: guid(900),
    SchoolAttendanceCode: guid(code),
  })

/** The row of V3's history for a state of that mark. */
const row = (learner: number, code: number): object => ({
  ExternalID: guid(learner),
  Present: true,
  Attendee: { ExternalID: guid(learner) },
  Event: { ExternalID: guid(900) },
  AttendanceCode: { ExternalID: guid(code) },
})

/** Runs it against these answers, the last one for ever; says what was asked. */
async function run(marks: FlatReply[], answers: unknown[]): Promise<{ asked: number; result: unknown }> {
  let asked = 0
  const result = await withHistories(marks, () => {
    asked += 1
    return Promise.resolve(answers[Math.min(asked, answers.length) - 1])
  }).catch((error: unknown) => String(error))
  return { asked, result }
}

const more = { '@odata.nextLink': 'http://elsewhere.test/x?page=2' }

describe('withHistories', () => {
  it('gives each mark its states in the order of V3, over all pages, and nothing of others', async () => {
    const answers = [{ value: [row(1, 3), row(2, 4), row(9, 1)], ...more }, { value: [row(1, 5)] }]
    expect(await run([mark(1), mark(2), mark(3)], answers)).toEqual({
      asked: 2,
      result: [
        { ...mark(1), histories: [mark(1, 3), mark(1, 5)] },
        { ...mark(2), histories: [mark(2, 4)] },
        { ...mark(3), histories: [] },
      ],
    })
  })

  it('asks for nothing where there is no mark', async () => {
    expect(await run([], [])).toEqual({ asked: 0, result: [] })
  })

  it.each([
    ['no history', undefined, 1, 'is missing'],
    ['no collection', {}, 1, 'is not a collection'],
    ['a strange row', { value: [{}] }, 1, 'holds a row that is not a state'],
    ['pages without end', { value: [], ...more }, 20, 'does not end'],
  ])('fails for %s rather than to leave states out', async (_name, answer, asked, text) => {
    expect(await run([mark(1)], [answer])).toEqual({
      asked,
      result: expect.stringContaining(text) as unknown,
    })
  })
})
