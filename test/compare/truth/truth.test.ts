import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { runs } from '../../support/long-run.ts'
import { compareFaces } from './compare-faces.ts'
import { defects } from './defects.ts'
import { sizeOfRun } from './draw-run.ts'
import { runCampaign } from './run-campaign.ts'

/** `npm run test:compare` makes 300 runs over a whole school. */
test('a compare run reports exactly the differences that the V2 and V3 interfaces of the sandbox were set to have', async () => {
  const { wrong, differences } = await runCampaign({
    compare: compareFaces,
    ...{ runs: runs(8, 60), seed: 1, scale: 'class' },
    sizeOf: (run) => sizeOfRun(1, run, runs(600, 6_000)),
  })
  expect(wrong).toEqual([])
  expect(differences).toBeGreaterThan(100)
})

/** `npm run test:compare -- --defects` runs the campaign with each defect. */
test.each(Object.entries(defects))(
  'the source of the comparison contains the code that the defect "%s" replaces exactly once',
  (_name, { module, from }) => {
    const source = readFileSync(new URL(`../../../src/${module}`, import.meta.url), 'utf8')
    expect(source.split(from)).toHaveLength(2)
  },
)
