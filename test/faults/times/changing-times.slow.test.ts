import { expect, test } from 'vitest'

import { createRandom } from '../../../src/sandbox/random.ts'
import { startSandbox } from '../../sandbox/start-sandbox.ts'
import { createSequence } from '../load/load.ts'
import { printResults } from '../scenario/report.ts'
import { runTimes } from './run-times.ts'
import { startServiceTimes } from './service-times.ts'

// `npm run test:faults -- --only changingTimes` runs a hundred seeds.
test.each([1, 5, 9])(
  'the adapter loses, doubles and reorders no mark while the clock, time zone and precision of the service change (seed %i)',
  { timeout: 120_000 },
  async (seed) => {
    const result = await runTimes({ seed })
    expect(result.findings.length, printResults([result])).toBe(0)
    expect([result.records > 60, result.broken > 0, result.clockSteps > 2]).toEqual([true, true, true])
  },
)

test('startServiceTimes dates marks in the time zone of the service, and changes that zone while the service runs', async () => {
  const sandbox = await startSandbox()
  const times = await startServiceTimes(sandbox.url, createRandom(3, 'service'), createSequence())
  const sent = '{"RecordedOn":"2026-06-10T10:00:00.123Z","Comment":"10:00"}'
  const dated = new Set<string>()
  await expect
    .poll(() => dated.add(times.rewrite(Buffer.from(sent)).toString()).size, {
      timeout: 60_000,
      interval: 10,
    })
    .toBe(2)
  await times.stop()
  expect([...dated].sort()).toEqual([sent, sent.replace('T10', 'T11')])
  expect(times.story.length).toBeGreaterThan(0)
})
