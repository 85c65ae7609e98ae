import { expect, test } from 'vitest'

import { createRestartDelay } from '../../../src/cli/workers/start-workers.ts'

test('a worker is replaced at once, then later and later while they end young', () => {
  const delayAfter = createRestartDelay()
  const ages = [5, 5, 5, 5, 5, 5, 5, 5, 5, 59_999, 60_000, 5]
  expect(ages.map((livedMs) => delayAfter(livedMs))).toEqual([
    100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000, 100, 200,
  ])
})
