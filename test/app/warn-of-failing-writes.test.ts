import { expect, it } from 'vitest'

import { type BatchAnswered, createEvents } from '../../src/observability/events.ts'
import { createLogger } from '../../src/observability/logger.ts'
import { warnOfFailingWrites } from '../../src/app/warn-of-failing-writes.ts'
import { createManualClock } from '../support/manual-clock.ts'

it('warnOfFailingWrites warns at the first batch that V3 does not apply, and then once a minute with the number of batches not applied', async () => {
  const lines: { level: number; msg: string }[] = []
  const write = (line: string): void => void lines.push(JSON.parse(line) as (typeof lines)[number])
  const clock = createManualClock()
  const events = warnOfFailingWrites(createEvents(createLogger('warn', { write })), clock)
  const answer = (given: Partial<BatchAnswered>): void =>
    events.batchAnswered({
      ...{
        partner: 'acme',
        records: 2,
        changesets: 1,
        outcomesShown: true,
        unmappedFields: 0,
        convertedFields: 0,
      },
      ...{ accepted: 0, refused: 0, notApplied: 0, unknown: 0, replayed: false, durationMs: 1, queuedMs: 0 },
      ...given,
    })
  const figures = (): object[] =>
    lines.splice(0).map((line) => {
      expect(line).toMatchObject({ level: 40, msg: 'writes fail on V3' })
      return Object.fromEntries(
        Object.entries(line).filter(([name]) => /^[bnpru]/.test(name) && name !== 'name'),
      )
    })
  answer({ accepted: 2 })
  answer({ refused: 2 })
  answer({ notApplied: 2, outcomesShown: false })
  expect(figures()).toEqual([])
  answer({ notApplied: 2 })
  expect(figures()).toEqual([{ partner: 'acme', batches: 1, notApplied: 2, unknown: 0 }])
  for (const reason of ['timeout', 'unavailable', 'unavailable'])
    answer({ notApplied: 1, unknown: 1, replayed: true, reason })
  for (let time = 3; time < 50; time++) answer({ notApplied: 1, unknown: 1, replayed: true })
  answer({ partner: 'other', unknown: 1 })
  expect(figures()).toEqual([{ partner: 'other', batches: 1, notApplied: 0, unknown: 1 }])
  await clock.pass(60_000)
  expect(figures()).toEqual([
    { partner: 'acme', batches: 50, notApplied: 50, unknown: 50, reason: 'unavailable' },
  ])
  await clock.pass(60_000)
  expect(figures()).toEqual([])
  answer({ unknown: 1 })
  expect(figures()).toEqual([{ partner: 'acme', batches: 1, notApplied: 0, unknown: 1 }])
})
