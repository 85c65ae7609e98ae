import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'

import { expect, onTestFinished, test } from 'vitest'

import { createRandom } from '../../../src/sandbox/random.ts'
import { descendantsOf, startPauses } from './pauses.ts'

/** A process, with a child of its own, that would live for a minute. */
async function startParent(): Promise<number> {
  const child = spawn('sh', ['-c', 'sleep 60 & echo started; wait'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  onTestFinished(() => void process.kill(-(child.pid ?? 0), 'SIGKILL'))
  await once(child.stdout, 'data')
  return child.pid ?? 0
}

/** One letter (proc(5)): T is stopped. */
function stateOf(pid: number): string {
  return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.[0] ?? ''
}

test('a process and its children stand still and go on, and all of them run when it is over', async () => {
  const parent = await startParent()
  const all = (): number[] => [parent, ...descendantsOf(parent)]
  expect(all()).toHaveLength(2)
  const random = createRandom(1, 'pauses')
  const pauses = startPauses({ random, targets: [{ pids: all }], lanes: 1, lastMs: [50, 100], gapMs: 50 })
  await expect.poll(() => all().map(stateOf), { interval: 5 }).toEqual(['T', 'T'])
  await expect.poll(() => all().map(stateOf), { interval: 5 }).not.toContain('T')
  await expect.poll(() => pauses.count(), { interval: 5 }).toBeGreaterThan(2)
  await pauses.stop()
  expect(all().map(stateOf)).not.toContain('T')
})

test('processes that are gone count as no pause', async () => {
  const random = createRandom(1, 'pauses')
  let asked = 0
  const gone = (): number[] => {
    asked += 1
    return [2 ** 30]
  }
  const pauses = startPauses({ random, targets: [{ pids: gone }], lanes: 1, lastMs: [1, 2], gapMs: 5 })
  await expect.poll(() => asked, { interval: 5 }).toBeGreaterThan(2)
  await pauses.stop()
  expect(pauses.count()).toBe(0)
})
