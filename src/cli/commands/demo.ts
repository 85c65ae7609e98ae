import type { Command } from 'commander'

import type { DemoOptions } from '../run-demo.ts'
import { readPort } from './read-option.ts'

const examples = `
Examples:
  markbridge demo
  markbridge demo --port 0 --sandbox-port 0
  markbridge demo --journal none

The data of the sandbox and the journal are removed at the end; a journal that --journal names is kept.`

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
    .addHelpText('after', examples)
    .action(async (options: DemoOptions) => {
      const { runDemo } = await import('../run-demo.ts')
      await runDemo(options)
    })
}
