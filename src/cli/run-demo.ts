import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { createApp } from '../app.ts'
import { parseConfig, readEnvironment } from '../config/index.ts'
import { createSandbox } from '../sandbox/index.ts'
import { runUntilStopped } from './run-until-stopped.ts'

const FIXTURE = fileURLToPath(new URL('../../fixtures/class-register/body.txt', import.meta.url))

/** The flags of `demo`. */
export interface DemoOptions {
  readonly port: number
  readonly sandboxPort: number
  readonly journal?: string
}

/** Runs the sandbox with the adapter in front until a signal stops them. */
export function runDemo(options: DemoOptions): Promise<void> {
  return runUntilStopped((onClose) => startDemo(options, onClose))
}

async function startDemo(options: DemoOptions, onClose: (close: () => Promise<void>) => void): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'markbridge-demo-'))
  onClose(() => rm(folder, { recursive: true }))
  const sandbox = createSandbox({ port: options.sandboxPort }, { portOption: '--sandbox-port' })
  onClose(() => sandbox.close())
  const service = await sandbox.listen()
  console.log(`sandbox ready ${service.url}`)
  const config = parseConfig({
    listen: { port: options.port },
    upstreams: { v3: { baseUrl: service.url } },
    journal: { url: options.journal ?? `sqlite:${join(folder, 'journal.db')}` },
  })
  const app = createApp(config, { logLevel: readEnvironment().logLevel ?? 'warn' })
  onClose(() => app.close())
  const adapter = await app.listen()
  console.log(`adapter ready ${adapter.url}`)
  console.log(`\nPost a class register of 30 marks as a V2 client:\n\n${await curlLine(adapter.url)}`)
  console.log(`\nThe marks that reached V3: curl -s ${service.url}/_sandbox/effects\nStop with Ctrl+C.`)
}

/** One line that works in any folder: the fixture's path is absolute, its boundary is read from it. */
async function curlLine(adapter: string): Promise<string> {
  const boundary = /^--(\S+)/.exec(await readFile(FIXTURE, 'utf8'))?.[1] ?? ''
  return [
    `curl -sS '${adapter}/sp-api-write-back-partner-live/V2/Attendance/$batch'`,
    `-H 'Ocp-Apim-Subscription-Key: sandbox' -H 'Authorization: bearer sandbox'`,
    `-H 'Content-Type: multipart/mixed; boundary=${boundary}'`,
    `--data-binary '@${FIXTURE}'`,
  ].join(' ')
}
