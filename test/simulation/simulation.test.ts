import { readFileSync } from 'node:fs'

import { expect, it } from 'vitest'

import { mutants } from './mutants.ts'
import { runHistories } from './run-histories.ts'

it('the write engine keeps every promise in a hundred simulated histories', async () => {
  const told = await runHistories(['--histories', '100', '--seed', '1'])
  expect(told).toMatch(/^100 histories, .*: nothing was found$/m)
}, 600_000)

it.each(mutants)(
  'the code that the mutant "$name" replaces occurs exactly once in $module',
  ({ module, from }) => {
    const source = readFileSync(new URL(`../../src/${module}`, import.meta.url), 'utf8')
    expect(source.split(from)).toHaveLength(2)
  },
)
