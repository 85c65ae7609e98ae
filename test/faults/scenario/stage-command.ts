import type { StageSetting } from '../../../src/rollout/stage.ts'
import { runCli } from '../../cli/run-cli.ts'
import { PARTNER } from './partner.ts'

/** Changes the stage of the partner with the command line; undefined: it was made, else why not. */
export async function changeByCommand(
  configFile: string,
  { stage, percent, always, never }: StageSetting,
  isBack: boolean,
): Promise<string | undefined> {
  const units = ['--percent', String(percent), '--always', always.join(','), '--never', never.join(',')]
  const set = ['set', PARTNER, stage, ...(stage === 'canary' ? units : []), '--reason', 'it is so']
  const { status, stdout, stderr } = await runCli([
    ...['rollout', ...(isBack ? ['back', PARTNER] : set)],
    ...['--config', configFile, '--json'],
  ])
  if (status === 0) return undefined
  if (status !== 1) throw new Error(`the command failed: ${stderr}`)
  return `command: ${/"result": *"([^"]+)"/.exec(stdout)?.[1] ?? stderr.slice(0, 200)}`
}
