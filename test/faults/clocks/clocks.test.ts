import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import { expect, onTestFinished, test } from 'vitest'

import { createRandom } from '../../../src/sandbox/random.ts'
import { type ClockKind, clockSettings, missingSystemClock, setClock, startClockSteps } from './clocks.ts'

/**
 * Prints every 5 ms the wall clock, by `Date.now` and by `new Date`, the monotonic clock, and the fixed date 0, which no step may change.
 */
const program =
  'setInterval(() => console.log(JSON.stringify([Date.now(), new Date().getTime(), performance.now(), new Date(0).getTime()])), 5)'

type Times = [now: number, wall: number, forward: number, epoch: number]

/** Starts a process whose clock offset is in a file. `last` returns the times that the process printed last. */
function startClockPrinter(kind: ClockKind): { file: string; last: () => Times } {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-clock-'))
  const file = join(folder, 'clock')
  setClock(file, 0)
  const { imports, env } = clockSettings(kind, file)
  const args = [...imports.flatMap((path) => ['--import', path]), '-e', program]
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  })
  let last: Times = [0, 0, 0, 0]
  createInterface(child.stdout).on('line', (line) => (last = JSON.parse(line) as Times))
  return { file, last: () => last }
}

const kinds: ClockKind[] = missingSystemClock() === undefined ? ['injected', 'system'] : ['injected']

test.each(kinds)(
  'a step of the %s clock changes the wall clock of a running process, but not its monotonic clock',
  async (kind) => {
    const { file, last } = startClockPrinter(kind)
    const hoursOff = (wall: number): number => Math.round((wall - Date.now()) / 3_600_000)
    for (const hours of [0, 3, -5]) {
      setClock(file, hours * 3_600)
      await expect
        .poll(() => last().slice(0, 2).map(hoursOff), { interval: 5, timeout: 60_000 })
        .toEqual([hours, hours])
      const [, , forward, epoch] = last()
      expect([forward > 0 && forward < 60_000, epoch]).toEqual([true, 0])
    }
  },
)

test('startClockSteps sets the clock forward and back, and restores the true time at the end', async () => {
  const { file, last } = startClockPrinter('injected')
  await expect.poll(() => last()[0], { interval: 5, timeout: 60_000 }).toBeGreaterThan(0)
  const steps = startClockSteps(createRandom(1, 'clocks'), [file])
  const seen = new Set<number>()
  const look = (): number[] => {
    const off = last()[0] - Date.now()
    if (Math.abs(off) > 2_000) seen.add(Math.sign(off))
    return [...seen].sort()
  }
  await expect.poll(look, { interval: 10, timeout: 60_000 }).toEqual([-1, 1])
  await steps.stop()
  expect(steps.count()).toBeGreaterThan(1)
  await expect
    .poll(() => Math.abs(last()[0] - Date.now()) < 500, { interval: 10, timeout: 60_000 })
    .toBe(true)
})
