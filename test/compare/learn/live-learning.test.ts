import { expect, it } from 'vitest'

import { createLiveLearning } from '../../../src/compare/learn/live-learning.ts'
import { parseLearned } from '../../../src/compare/learn/learned.ts'
import { AdapterError } from '../../../src/errors.ts'
import { createManualClock } from '../../support/manual-clock.ts'

it('keeps counts in memory while they cannot be kept, and reports why once, also an error of the program', async () => {
  const clock = createManualClock()
  const failures: string[] = []
  let fault: Error | undefined = new AdapterError('ADP_JOURNAL_UNAVAILABLE', 'down')
  let kept: string | undefined
  const learning = createLiveLearning({
    store: {
      updateEvidence: async (_name, update) => {
        if (fault !== undefined) throw fault
        return (kept = update(kept))
      },
    },
    clock,
    limits: () => expect.fail(),
    onFailure: (partner, code) => failures.push(`${partner} ${code}`),
  })
  learning.start()
  const count = async (): Promise<void> => {
    learning.hidden.found('acme', 'kept')
    await clock.pass(5_000)
  }
  await count()
  await count()
  expect(failures).toEqual(['acme ADP_JOURNAL_UNAVAILABLE'])
  fault = undefined
  await count()
  fault = new TypeError('of the program')
  await count()
  await learning.stop()
  expect(failures).toEqual(['acme ADP_JOURNAL_UNAVAILABLE', 'acme ADP_INTERNAL'])
  expect([...parseLearned(kept)]).toEqual([['mismatch/kept', 3]])
})
