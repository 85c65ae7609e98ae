import type { Command } from 'commander'

import { createSandbox } from '../sandbox/index.ts'
import { readCount, readPort } from './options.ts'
import { runUntilStopped } from './run-until-stopped.ts'

const examples = `
Examples:
  markbridge sandbox
  markbridge sandbox --port 4010 --seed 7
  markbridge sandbox --db ./data/sandbox.db

Key and bearer "sandbox" are always accepted. GET /_sandbox/samples names ids to try, GET /_sandbox/effects shows every
accepted write, POST /_sandbox/reset forgets them.`

interface SandboxFlags {
  readonly port: number
  readonly host: string
  readonly seed: number
  readonly db: string
  readonly now?: string
}

/** Adds `sandbox`: runs the stand-in service until it is told to stop. */
export function addSandbox(program: Command): void {
  program
    .command('sandbox')
    .description('run the stand-in service: V3 on a seeded class, to try everything without a subscription')
    .option('--port <n>', 'port to listen on', readPort, 4010)
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--seed <n>', 'seed of the class: the same seed gives the same ids', readCount, 1)
    .option('--db <file>', 'keep the store in a file', ':memory:')
    .option('--now <date-time>', 'a clock that stands still, ISO 8601')
    .addHelpText('after', examples)
    .action(async ({ now, ...flags }: SandboxFlags) => {
      const sandbox = createSandbox(now === undefined ? flags : { ...flags, now })
      await runUntilStopped(async () => {
        const { url } = await sandbox.listen()
        console.log(`sandbox ready ${url}`)
        return () => sandbox.close()
      })
    })
}
