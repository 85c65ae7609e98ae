import { expect, it, vi } from 'vitest'

import { rolloutFile } from '../cli/rollout-file.ts'
import { runCommand } from '../cli/run-command.ts'
import { sandboxHeaders } from '../sandbox/start-sandbox.ts'
import { batchOf, postBatch } from '../support/batch-request.ts'
import { startFaces } from './support/compared-faces.ts'
import { startCompared } from './support/compared-partner.ts'
import { journalFile } from './support/journal-file.ts'

const SCHOOLS = 7
const LEARNERS = 10
const SESSIONS = 16

/** Settings with which 74 learner-days without a difference are enough evidence for a step. */
const rollout = { resendWindowMs: 1_000, evidence: { limit: 0.04, days: 0 } }
const compare = { percent: 100, settleMs: 100 }

interface Advice {
  readonly verdict: string
  readonly missing: readonly string[]
  readonly figures: { readonly comparison: object }
}

it('rollout advises each step from shadow to v3 only after the necessary comparisons', async () => {
  const faces = await startFaces({ scale: 'school' })
  const { learners, events, codes } = faces.samples
  const journal = journalFile()
  const partner = { stage: 'shadow', canary: { header: 'x-school' }, compare }
  const config = await rolloutFile(journal.url, { partner, rollout })
  const rolloutCommand = async (...words: string[]): Promise<string> => {
    const { stdout, stderr } = await runCommand(['rollout', ...words, '--config', config])
    expect(stderr).toBe('')
    return stdout
  }
  const advise = async (): Promise<Advice> =>
    JSON.parse(await rolloutCommand('advise', 'acme', '--json')) as Advice

  let batches = 0
  /** Posts the registers of these sessions for all schools, and one correction of the first register. */
  const takeRegisters = async (
    sessions: readonly number[],
    checksOfBatch: number,
    settings: object,
  ): Promise<void> => {
    const choices = { ...partner, ...settings }
    const { adapter, settled } = await startCompared(faces.v2Url, faces.v3Url, choices, { journal, rollout })
    const before = batches
    const post = async (school: number, records: readonly object[]): Promise<void> => {
      batches += 1
      const batch = batchOf(records, {
        batch: `batch_${batches}`,
        changeset: `changeset_${batches}`,
      })
      const headers = { ...batch.headers, ...sandboxHeaders, 'x-school': `school-${school}` }
      expect((await postBatch(adapter, { ...batch, headers })).status).toBe(200)
    }
    for (const session of sessions)
      for (let school = 0; school < SCHOOLS; school += 1) {
        const marks = Array.from({ length: LEARNERS }, (_, at) => ({
          ...faces.mark(0, at === 0 ? { MinutesLate: 4 } : at === 1 ? { Comment: 'bus' } : {}),
          Learner: learners[school * LEARNERS + at],
          AttendableEvent: events[session],
          SchoolAttendanceCode: codes[at % 4]?.id,
        }))
        await post(school, marks)
        if (session === sessions[0] && school === 0)
          await post(school, [{ ...marks.at(-1), Comment: 'dentist' }])
      }
    await settled((batches - before) * checksOfBatch)
    // Stores the evidence, which the next adapter continues.
    await adapter.app.close()
  }

  await takeRegisters([0], 1, {})
  const early = await advise()
  expect(early.verdict).toBe('inconclusive')
  // On a slow machine, a batch can be sent to V2 before it is in the journal, so this reason is ignored.
  expect(
    early.missing.filter((text) => !text.startsWith('A batch may have been relayed to V2 unrecorded')),
  ).toEqual([
    expect.stringMatching(/^\d+ of 1,000 distinct records were seen on V2\.$/),
    '8 of 100 batches were seen on V2.',
    '70 of 74 learner-days were compared with V2.',
  ])

  const others = Array.from({ length: SESSIONS - 1 }, (_, at) => at + 1)
  await takeRegisters(others, 1, {})
  const ready = await vi.waitFor(
    async () => {
      const advice = await advise()
      expect(advice.missing).toEqual([])
      return advice
    },
    { timeout: 60_000, interval: 200 },
  )
  expect(ready).toMatchObject({
    verdict: 'ready',
    missing: [],
    figures: {
      comparison: {
        check: 'reply',
        pairs: (SESSIONS * SCHOOLS * LEARNERS) / 2,
        schools: SCHOOLS,
        differing: 0,
        comparedShare: 1,
      },
    },
  })
  await rolloutCommand('set', 'acme', 'canary', '--percent', '100', '--reason', 'advised')

  const sessions = [0, ...others]
  await takeRegisters(sessions, 0, {})
  expect((await advise()).missing).toEqual([
    'Nothing that V3 served has been read back on V2 (0 of 74 learner-days, 0 of 0 days). partners[].check.v2 sets the percentage that is read back.',
  ])
  await takeRegisters(sessions, 1, { check: { v2: 100 } })
  const last = await advise()
  expect(last.missing).toEqual([])
  expect(last.figures.comparison).toMatchObject({
    check: 'readBack',
    pairs: (SESSIONS * SCHOOLS * LEARNERS) / 2,
    differing: 0,
  })
})
