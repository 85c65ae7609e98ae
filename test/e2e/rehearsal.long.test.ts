import { expect, onTestFinished, test } from 'vitest'

import { startCli } from '../cli/run-cli.ts'
import { runCommand } from '../cli/run-command.ts'

interface Entry {
  readonly by: string
  readonly action: string
  readonly to: { readonly stage: string } | null
}

const free = ['--port', '0', '--sandbox-port', '0'] as const

// The guard counts one write of a school in ten seconds, so the rehearsal takes minutes at any speed.
test(
  'demo --rehearse takes a partner from legacy to complete, with a refused step, a rollback and a guard that acts, and loses no mark',
  { timeout: 600_000 },
  async () => {
    const demo = startCli(['demo', '--rehearse', '--speed', '12', ...free])
    onTestFinished(async () => {
      await demo.stop()
    })
    const ended = await Promise.race([
      demo.until(/The rehearsal is complete/),
      demo.untilErrors(/The rehearsal stopped/),
    ])
    expect(ended).toContain('No mark is lost, and no mark is stored twice')
    expect(ended).toMatch(/The difference is found, so the step is refused: \d+ learner-days differ/)
    expect(ended.match(/Advice: ready\./g)).toHaveLength(5)
    const config = /--config '([^']+)'/.exec(ended)?.[1] ?? ''
    const { stdout } = await runCommand(['rollout', 'history', 'demo', '--json', '--config', config])
    const { entries } = JSON.parse(stdout) as { entries: readonly Entry[] }
    const taken = entries.filter(({ action }) => action !== 'propose')
    expect(taken.map(({ to }) => to?.stage)).toEqual([
      ...['shadow', 'shadow', 'canary', 'shadow', 'canary', 'shadow', 'canary', 'v3', 'complete'],
    ])
    expect(taken.flatMap(({ by }, index) => (by === 'guard' ? [index] : []))).toEqual([5])
    expect(await demo.stop()).toBe(0)
  },
)
