import type { Command } from 'commander'

import { createApp } from '../app.ts'
import { loadConfig, readEnvironment } from '../config/index.ts'
import { readPort } from './options.ts'
import { runUntilStopped } from './run-until-stopped.ts'

const examples = `
Examples:
  markbridge serve --v3 http://127.0.0.1:4010
  markbridge serve --config markbridge.yaml --port 8080
  markbridge serve --v3 http://127.0.0.1:4010 --journal sqlite:/var/lib/markbridge/journal.db

Without a file there is one partner for any subscription key, at stage v3. Flags win over the file.
MARKBRIDGE_LOG_LEVEL sets what is logged: debug, info (default), warn, error, silent.`

interface ServeOptions {
  readonly config?: string
  readonly v3?: string
  readonly host?: string
  readonly port?: number
  readonly journal?: string
}

/** Adds `serve`: runs the adapter until it is told to stop. */
export function addServe(program: Command): void {
  program
    .command('serve')
    .description('run the adapter')
    .option('--config <file>', 'configuration file (YAML)')
    .option('--v3 <url>', 'base address of the V3 service')
    .option('--host <host>', 'address to listen on (default 127.0.0.1)')
    .option('--port <n>', 'port to listen on (default 8080)', readPort)
    .option('--journal <url>', 'sqlite:<file> (default sqlite:./data/journal.db), postgres://…, or none')
    .addHelpText('after', examples)
    .action(async ({ config: path, ...flags }: ServeOptions) => {
      const config = await loadConfig(path, flags)
      const app = createApp(config, { logLevel: readEnvironment().logLevel ?? 'info' })
      await runUntilStopped(async () => {
        const { url } = await app.listen()
        console.log(`adapter ready ${url}`)
        return () => app.close()
      })
    })
}
