import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createApp } from '../app.ts'
import { parseConfig, type PartnerConfig, readEnvironment } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import { createSandbox } from '../sandbox/index.ts'
import { curlLine, rolloutLine, SCHOOL_HEADER, SCHOOLS, schoolsLine } from './demo/lines.ts'
import { watchSplit } from './demo/watch-split.ts'
import { runUntilStopped } from './run-until-stopped.ts'

type Stage = PartnerConfig['stage']

/** The flags of `demo`. */
export interface DemoOptions {
  readonly port: number
  readonly sandboxPort: number
  readonly journal?: string
  /** Puts V2 behind the adapter as well, with the one partner at this stage. */
  readonly stage?: Stage
  /** Share of the schools that V3 serves at `canary`. */
  readonly percent?: number
}

/** Runs the sandbox with the adapter in front until a signal stops them. */
export async function runDemo(options: DemoOptions): Promise<void> {
  if (options.percent !== undefined && options.stage !== 'canary')
    throw new AdapterError('ADP_USAGE', '--percent is the share at one stage: give --stage canary as well.')
  await runUntilStopped((onClose) => startDemo(options, onClose))
}

async function startDemo(options: DemoOptions, onClose: (close: () => Promise<void>) => void): Promise<void> {
  const { stage, percent = 20 } = options
  const folder = await mkdtemp(join(tmpdir(), 'markbridge-demo-'))
  onClose(() => rm(folder, { recursive: true }))
  const sandbox = createSandbox(
    { port: options.sandboxPort, ...(stage === undefined ? {} : { v2Port: 0 }) },
    { portOption: '--sandbox-port' },
  )
  onClose(() => sandbox.close())
  const { url, v2Url } = await sandbox.listen()
  console.log(`sandbox ready ${url}`)
  if (stage !== undefined) console.log(`sandbox v2 ready ${v2Url}`)
  const staged = {
    upstreams: { v3: { baseUrl: url }, v2: { baseUrl: v2Url } },
    // Every step can be taken at once: no client of the demo sends a batch again after it.
    rollout: { resendWindowMs: 1_000 },
    partners: [{ id: 'demo', match: { any: true }, stage, canary: { percent, header: SCHOOL_HEADER } }],
  }
  const values = {
    listen: { port: options.port },
    journal: { url: options.journal ?? `sqlite:${join(folder, 'journal.db')}` },
    ...(stage === undefined ? { upstreams: { v3: { baseUrl: url } } } : staged),
  }
  const config = parseConfig(values)
  // For the commands of rollout: JSON is YAML.
  const file = join(folder, 'markbridge.yaml')
  if (stage !== undefined) await writeFile(file, JSON.stringify(values, null, 2))
  const app = createApp(config, { logLevel: readEnvironment().logLevel ?? 'warn' })
  onClose(() => app.close())
  const adapter = await app.listen()
  console.log(`adapter ready ${adapter.url}`)
  if (stage !== undefined) console.log(`\n${describeStage(stage, percent)}`)
  const [what, line] =
    stage === 'canary'
      ? [`the register of a class for ${SCHOOLS} schools`, await schoolsLine(adapter.url)]
      : ['a class register of 30 marks', await curlLine(adapter.url)]
  console.log(`\nPost ${what} as a V2 client:\n\n${line}`)
  if (stage !== undefined && options.journal !== 'none')
    console.log(`\nMove the partner, here back to V2, and post again:\n\n${rolloutLine('back demo', file)}`)
  const reached = stage === undefined ? 'reached V3' : 'reached the service'
  console.log(`\nThe marks that ${reached}: curl -s ${url}/_sandbox/effects\nStop with Ctrl+C.`)
  if (stage === undefined) return
  const stopping = new AbortController()
  const watching = watchSplit(url, (text) => console.log(text), stopping.signal)
  onClose(() => {
    stopping.abort()
    return watching
  })
}

function describeStage(stage: Stage, percent: number): string {
  switch (stage) {
    case 'legacy':
    case 'shadow':
      return `The partner is at stage ${stage}: V2 serves.`
    case 'canary':
      return `The partner is at stage canary: V3 serves ${percent} % of its schools, V2 the others.`
    case 'v3':
    case 'complete':
      return `The partner is at stage ${stage}: V3 serves.`
  }
}
