import { type Command, Option } from 'commander'

import type { SandboxFlags } from '../run-sandbox.ts'
import { readCount, readPort } from './read-option.ts'

const examples = `
Examples:
  markbridge sandbox
  markbridge sandbox --port 4010 --seed 7
  markbridge sandbox --scale school
  markbridge sandbox --v2-port 4020
  markbridge sandbox --calls-per-second 5 --on-existing conflict
  markbridge sandbox --config sandbox.yaml

Key and bearer "sandbox" are always accepted. GET /_sandbox/samples lists ids to try, GET /_sandbox/effects lists every
accepted write, POST /_sandbox/reset restores the seeded state. A school (720 learners, over 680,000 marks) is built once
and stored in a file. docs/sandbox.md describes the configuration file: callers, permissions, unavailable sub domains.`

/** Adds `sandbox`: runs the stand-in service until a signal stops it. */
export function addSandbox(program: Command): void {
  program
    .command('sandbox')
    .description('run the stand-in service with a seeded class or school; no subscription is needed')
    .option('--config <file>', 'YAML file with options of createSandbox; the flags below override it')
    .option('--port <n>', 'port to listen on (default: 4010)', readPort)
    .option('--v2-port <n>', 'give the V2 face a port of its own (default: the port of V3)', readPort)
    .option('--host <host>', 'address to listen on (default: 127.0.0.1)')
    .option('--seed <n>', 'seed of the data: the same seed gives the same ids (default: 1)', readCount)
    .addOption(
      new Option('--scale <scale>', 'number of learners (default: class)').choices(['class', 'school']),
    )
    .option('--db <file>', 'keep the store in a file (default: memory for a class, ./data for a school)')
    .option('--now <date-time>', 'fixed time of the service clock, ISO 8601')
    .addOption(
      new Option('--on-existing <what>', 'effect of a POST for an existing mark (default: replace)').choices([
        'replace',
        'duplicate',
        'conflict',
      ]),
    )
    .option(
      '--calls-per-second <n>',
      'answer 429 above this rate for each key (default: no limit)',
      readCount,
    )
    .option('--no-control', 'disable the /_sandbox routes')
    .addHelpText('after', examples)
    .action(async ({ config, ...all }: SandboxFlags, command: Command) => {
      const flags = Object.entries(all).filter(([name]) => command.getOptionValueSource(name) === 'cli')
      const { runSandbox } = await import('../run-sandbox.ts')
      await runSandbox(config, Object.fromEntries(flags))
    })
}
