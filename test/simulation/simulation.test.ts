import { readFileSync } from 'node:fs'

import { expect, it } from 'vitest'

import { isLongRun } from '../support/long-run.ts'
import { mutants } from './mutants.ts'
import { runHistories } from './run-histories.ts'

/** So many take ten seconds on two cores that do nothing else. */
const HISTORIES = isLongRun ? 20_000 : 400

it('keeps every promise in histories in simulated time, and takes each transition of records', async () => {
  const told = await runHistories(['--histories', String(HISTORIES), '--seed', '1'])
  expect(told).toMatch(new RegExp(`^${HISTORIES} histories, .*: nothing was found$`, 'm'))
  expect(told).not.toContain('NEVER')
}, 600_000)

it.each(mutants)('the guard that "$name" breaks stands once in $module', ({ module, from }) => {
  const source = readFileSync(new URL(`../../src/${module}`, import.meta.url), 'utf8')
  expect(source.split(from)).toHaveLength(2)
})
