import { type Command, Option } from 'commander'

import type { DemoOptions } from '../run-demo.ts'
import { readPercent, readPort } from './read-option.ts'

const examples = `
Examples:
  markbridge demo
  markbridge demo --port 0 --sandbox-port 0
  markbridge demo --journal none
  markbridge demo --stage canary --percent 20

With --stage the sandbox serves V2 on a port of its own, the adapter has both behind it, and each line "served: …" counts the
marks that V2 and V3 have accepted.
The data of the sandbox and the journal are removed at the end; a journal that --journal names is kept.`

const stages = ['legacy', 'shadow', 'canary', 'v3', 'complete'] satisfies DemoOptions['stage'][]

/** Adds `demo`: runs sandbox and adapter on loopback and prints a curl line. */
export function addDemo(program: Command): void {
  program
    .command('demo')
    .description(
      'run the sandbox with the adapter in front, and print a curl line that posts a class register',
    )
    .option('--port <n>', 'port of the adapter', readPort, 8080)
    .option('--sandbox-port <n>', 'port of the sandbox', readPort, 4010)
    .option('--journal <url>', 'sqlite:<file>, postgres://…, or none (default: a temporary file)')
    .addOption(
      new Option('--stage <stage>', 'put V2 behind the adapter too, with the partner at this stage').choices(
        stages,
      ),
    )
    .option('--percent <n>', 'share of the schools that V3 serves at canary (default: 20)', readPercent)
    .addHelpText('after', examples)
    .action(async (options: DemoOptions) => {
      const { runDemo } = await import('../run-demo.ts')
      await runDemo(options)
    })
}
