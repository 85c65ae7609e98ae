import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { expect, it } from 'vitest'

import { isLongRun } from '../support/long-run.ts'
import { mutants } from './mutants.ts'

const run = promisify(execFile)
const script = fileURLToPath(new URL('run.ts', import.meta.url))
const HISTORIES = isLongRun ? 20_000 : 200

async function runHistories(...args: string[]): Promise<string> {
  // Exit status 1: something was found, which is what it prints.
  const child = run(process.execPath, [script, ...args], { maxBuffer: 100_000_000 })
  const { stdout } = await child.catch((failed: unknown) => failed as { readonly stdout: string })
  return stdout
}

it('keeps every promise in histories in simulated time', async () => {
  const told = await runHistories('--histories', String(HISTORIES), '--seed', '1')
  expect(told).toMatch(new RegExp(`^${HISTORIES} histories, .*: nothing was found$`, 'm'))
})

/** Each showed a fault of the engine once; `run.ts --seed` tells the history. */
it.each([
  ['a service that stores 0 as none, and echoes what was posted: a mark was posted twice', '275'],
  ['a record of unknown outcome before a newer one of its batch: its client was never told more', '10'],
])('%s', async (_what, seed) => {
  expect(await runHistories('--seed', seed, '--histories', '1')).toContain('nothing was found')
})

it('tells the same history for the same seed', async () => {
  const [one, other] = await Promise.all([runHistories('--seed', '7'), runHistories('--seed', '7')])
  expect(one).toBe(other)
  expect(one).toContain('the faults end')
})

it.each(mutants)('the guard that "$name" breaks stands once in $module', ({ module, from }) => {
  const source = readFileSync(new URL(`../../src/${module}`, import.meta.url), 'utf8')
  expect(source.split(from)).toHaveLength(2)
})

it('finds an engine that repeats an unknown outcome without a read-back', async () => {
  expect(await runHistories('--mutants', '--only', 'retries an unknown outcome')).toMatch(/seed \d+: doubled/)
})
