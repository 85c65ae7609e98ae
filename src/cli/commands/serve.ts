import type { Command } from 'commander'

import type { ServeOptions } from '../run-serve.ts'
import { readPort, readWorkers } from './read-option.ts'

const examples = `
Examples:
  markbridge serve --v3 http://127.0.0.1:4010
  markbridge serve --config markbridge.yaml --port 8080
  markbridge serve --v3 http://127.0.0.1:4010 --journal sqlite:/var/lib/markbridge/journal.db
  markbridge serve --config markbridge.yaml --workers 4
  markbridge serve --config markbridge.yaml --watch

Without a file there is one partner, which matches every subscription key, at stage v3. Flags override the file.
SIGHUP reloads the file: partners and limits change while requests run, and a faulty file changes nothing.
MARKBRIDGE_LOG_LEVEL sets the lowest level that is logged: debug, info (default), warn, error, silent.`

/** Adds `serve`: runs the adapter until a signal stops it. */
export function addServe(program: Command): void {
  program
    .command('serve')
    .description('run the adapter')
    .option('--config <file>', 'configuration file (YAML)')
    .option('--v3 <url>', 'base address of the V3 service')
    .option('--v2 <url>', 'base address of the V2 service, for stages at which V2 serves')
    .option('--host <host>', 'address to listen on (default 127.0.0.1)')
    .option('--port <n>', 'port to listen on (default 8080)', readPort)
    .option('--journal <url>', 'sqlite:<file> (default sqlite:./data/journal.db), postgres://…, or none')
    .option(
      '--workers <n>',
      'number of processes that share the port; more than 1 needs a journal',
      readWorkers,
      1,
    )
    .option('--watch', 'reload when the configuration, or a file of a secret in it, changes', false)
    .addHelpText('after', examples)
    .action(async (options: ServeOptions) => {
      const { startMemorySaver } = await import('../memory-saver.ts')
      startMemorySaver()
      const { runServe } = await import('../run-serve.ts')
      await runServe(options)
    })
}
