import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { type Command, Option } from 'commander'
import * as z from 'zod'

import { createApp } from '../../app.ts'
import { parseConfig, type PartnerConfig, readEnvironment, Secret } from '../../config/index.ts'
import { AdapterError, errorCodeOf } from '../../errors.ts'
import { stages } from '../../rollout/stage.ts'
import { createSandbox } from '../../sandbox/index.ts'
import { createLogger, openTextLines } from '../../observability/logger.ts'
import { openConsole } from '../console/open-console.ts'
import { keepServing } from '../last-handlers.ts'
import { createSelfSigned } from '../self-signed.ts'
import { runUntilStopped } from '../signals.ts'
import { ownCommand } from '../text.ts'
import { readPercent, readPort, readWhole } from '../options.ts'
import { rehearse } from '../rehearsal/rehearse.ts'
import { countServed, type ServedMarks } from '../rehearsal/served-marks.ts'
import { openConfiguredTracing } from '../tracing.ts'

const examples = `
Examples:
  markbridge demo
  markbridge demo --port 0 --sandbox-port 0 --console 0
  markbridge demo --journal none
  markbridge demo --tls
  markbridge demo --stage canary --percent 20
  markbridge demo --rehearse

With --stage the sandbox serves V2 on a separate port, the adapter forwards to
V2 and V3, and each line "served: …" counts the marks that V2 and V3 accepted.
With --rehearse it also posts registers of many schools, and takes the partner
from legacy to complete in about ten minutes: V3 shows wrong marks for a time,
an operator goes back, V3 fails and a guard acts. Each line says what happens.
The data of the sandbox and the journal are removed at the end. A journal that
--journal names is kept.`

const FIXTURE = fileURLToPath(new URL('../../../fixtures/class-register/body.txt', import.meta.url))
const PATH = '/sp-api-write-back-partner-live/V2/Attendance/$batch'
const CREDENTIALS = "-H 'Ocp-Apim-Subscription-Key: sandbox' -H 'Authorization: bearer sandbox'"

const SCHOOL_HEADER = 'X-School'
const PARTNER = 'demo'

/** The thresholds for a small partner. A limit of 4 % needs only 74 learner-days without a difference. */
const rehearsalEvidence = { limit: 0.04, days: 0 }
/** Settings with which every write is compared. While V3 is down, a client gets 503 after `budgetMs`. */
const rehearsalPartner = {
  compare: { percent: 100, settleMs: 100 },
  check: { v2: 100 },
  v3: { budgetMs: 3_000 },
}

/** The number of schools. With 20 schools, `--percent 20` selects some schools but not all. */
const SCHOOLS = 20

export function addDemo(command: Command): void {
  command
    .option('--port <n>', 'port of the adapter', readPort, 8080)
    .option('--sandbox-port <n>', 'port of the sandbox', readPort, 4010)
    .option('--console <port>', 'port of the web console (default: 8081)', readPort)
    .option('--journal <url>', 'sqlite:<file>, postgres://…, or none (default: a temporary file)')
    .option('--tls', 'serve https with a certificate for localhost that the demo signs itself', false)
    .addOption(
      new Option('--stage <stage>', 'put V2 behind the adapter too, with the partner at this stage').choices(
        stages,
      ),
    )
    .option('--percent <n>', 'percentage of the schools that V3 serves at canary (default: 20)', readPercent)
    .option(
      '--rehearse',
      'take the partner from legacy, or from --stage shadow, to complete with generated traffic',
    )
    .option(
      '--speed <n>',
      'registers of ten marks that the rehearsal posts per second (default: 8)',
      readSpeed,
    )
    .addHelpText('after', examples)
    .action(runDemo)
}

const readSpeed = readWhole(1, 100, 'The speed must be a whole number from 1 to 100.')

type Stage = PartnerConfig['stage']

interface DemoOptions {
  readonly port: number
  readonly sandboxPort: number
  readonly console?: number
  readonly journal?: string
  readonly tls: boolean
  readonly stage?: Stage
  readonly percent?: number
  readonly rehearse?: boolean
  readonly speed?: number
}

async function runDemo(given: DemoOptions): Promise<void> {
  const options = given.rehearse === true ? ({ stage: 'legacy', ...given } as const) : given
  expectRehearsal(options)
  if (options.percent !== undefined && options.stage !== 'canary')
    throw new AdapterError(
      'ADP_USAGE',
      '--percent applies to stage canary only. Nothing was started. Add --stage canary.',
    )
  await runUntilStopped((onClose) =>
    startDemo(options, onClose).catch((error: unknown) => {
      throw withFreePorts(error)
    }),
  )
}

function expectRehearsal({ rehearse, speed, stage, journal }: DemoOptions): void {
  const message =
    rehearse !== true
      ? speed !== undefined && '--speed applies to a rehearsal only. Nothing was started. Add --rehearse.'
      : stage !== 'legacy' && stage !== 'shadow'
        ? 'A rehearsal begins at legacy or shadow. Nothing was started. Name one of these stages, or leave --stage out.'
        : journal === 'none' && 'A rehearsal needs a journal. Nothing was started. Leave --journal out.'
  if (message !== false) throw new AdapterError('ADP_USAGE', message)
}

/** Returns an error that names a command with free ports if a port is in use, and any other error unchanged. */
function withFreePorts(error: unknown): unknown {
  const cause = error instanceof AdapterError ? error.cause : undefined
  if (errorCodeOf(cause) !== 'EADDRINUSE') return error
  const port = z.object({ port: z.number() }).safeParse(cause).data?.port
  return new AdapterError(
    'ADP_CONFIGURATION',
    `Port ${port ?? ''} is in use, perhaps by another demo. Nothing was started. To use free ports, run: ${ownCommand()} demo --port 0 --sandbox-port 0 --console 0`,
    { cause },
  )
}

/** Returns the port of the console, or `undefined` without a journal. If the adapter uses any free port, so does the console. */
const consolePortOf = ({ console, port, journal }: DemoOptions): number | undefined =>
  journal === 'none' ? undefined : (console ?? (port === 0 ? 0 : 8081))

async function startDemo(options: DemoOptions, onClose: (close: () => Promise<void>) => void): Promise<void> {
  const { stage, percent = 20, rehearse: isRehearsal = false } = options
  const consolePort = consolePortOf(options)
  const folder = await mkdtemp(join(tmpdir(), 'markbridge-demo-'))
  onClose(() => rm(folder, { recursive: true }))
  const sandbox = createSandbox({
    port: options.sandboxPort,
    ...(stage === undefined ? {} : { v2Port: 0 }),
    ...(isRehearsal ? { scale: 'school' } : {}),
  })
  onClose(() => sandbox.close())
  const { url, v2Url } = await sandbox.listen()
  console.log(`sandbox ready ${url}`)
  if (stage !== undefined) console.log(`sandbox v2 ready ${v2Url}`)
  const staged = {
    upstreams: { v3: { baseUrl: url }, v2: { baseUrl: v2Url } },
    // No client of the demo resends a batch after a step, so a step need not wait long for resends.
    rollout: { resendWindowMs: 1_000, ...(isRehearsal ? { evidence: rehearsalEvidence } : {}) },
    partners: [
      {
        ...{ id: PARTNER, match: { any: true }, stage, canary: { percent, header: SCHOOL_HEADER } },
        ...(isRehearsal ? rehearsalPartner : {}),
      },
    ],
  }
  const values = {
    listen: { port: options.port },
    journal: { url: options.journal ?? `sqlite:${join(folder, 'journal.db')}` },
    ...(stage === undefined ? { upstreams: { v3: { baseUrl: url } } } : staged),
    ...(consolePort === undefined ? {} : { console: { port: consolePort } }),
  }
  const certificate = options.tls ? join(folder, 'certificate.pem') : undefined
  const tls = certificate && (await writeCertificate(certificate))
  const config = parseConfig({ ...values, listen: { ...values.listen, tls } })
  // The `rollout` commands read this file. JSON is valid YAML.
  const file = join(folder, 'markbridge.yaml')
  if (stage !== undefined) await writeFile(file, JSON.stringify(values, null, 2))
  const logger = createLogger(readEnvironment().logLevel ?? 'warn', await openTextLines())
  const app = createApp(config, { logger, tracing: await openConfiguredTracing() })
  onClose(() => app.close())
  const adapter = await app.listen()
  keepServing(app.onUnhandled)
  console.log(`adapter ready ${adapter.url}`)
  const opened =
    config.console && (await openConsole(config.console, () => config, logger, app.consoleData(), url))
  if (opened !== undefined) {
    onClose(opened.close)
    console.log(`console ready ${opened.url}`)
  }
  if (stage !== undefined) console.log(`\n${describeStage(stage, percent)}`)
  const [what, line] =
    stage === 'canary'
      ? [`the register of a class for ${SCHOOLS} schools`, await schoolsLine(adapter.url, certificate)]
      : ['a class register of 30 marks', await curlLine(adapter.url, certificate)]
  console.log(`\nPost ${what} as a V2 client:\n\n${line}`)
  if (stage !== undefined && stage !== 'legacy' && options.journal !== 'none')
    console.log(`\nMove the partner back to V2, and post again:\n\n${rolloutLine(`back ${PARTNER}`, file)}`)
  const reached = stage === undefined ? 'reached V3' : 'reached the service'
  if (opened?.link !== undefined)
    console.log(`\nWatch the batch in the console. This link works once:\n\n${opened.link}`)
  console.log(`\nThe marks that ${reached}: curl -s ${url}/_sandbox/effects\nStop with Ctrl+C.`)
  if (stage === undefined) return
  const stopping = new AbortController()
  const { signal } = stopping
  const served = countServed(url)
  const running = isRehearsal
    ? reportFailure(
        rehearse({
          ...{
            adapter: adapter.url,
            sandbox: url,
            config: file,
            partner: PARTNER,
            schoolHeader: SCHOOL_HEADER,
          },
          ...{ stage, registersPerSecond: options.speed ?? 8, served, signal },
        }),
        signal,
      )
    : watchSplit(served, signal)
  onClose(() => {
    stopping.abort()
    return running
  })
}

/** Prints why a rehearsal ended early. The demo continues, so that the console shows the state. */
async function reportFailure(running: Promise<void>, signal: AbortSignal): Promise<void> {
  await running.catch((cause: unknown) => {
    if (signal.aborted) return
    process.exitCode = 1
    console.error(`markbridge: ${cause instanceof Error ? cause.message : ''}`)
  })
}

/** Creates a certificate for this machine, and writes it to `path` for the clients of the demo. The key stays in memory. */
async function writeCertificate(path: string): Promise<{ readonly cert: Secret; readonly key: Secret }> {
  const { cert, key } = createSelfSigned(Date.now())
  await writeFile(path, cert)
  return { cert: new Secret(cert), key: new Secret(key) }
}

function describeStage(stage: Stage, percent: number): string {
  const isV2 = stage === 'legacy' || stage === 'shadow'
  const serves =
    stage === 'canary'
      ? `V3 serves ${percent} % of its schools, and V2 serves the others`
      : `${isV2 ? 'V2' : 'V3'} serves`
  return `The partner is at stage ${stage}: ${serves}.`
}

const curlOf = (certificate: string | undefined): string =>
  certificate === undefined ? 'curl -sS' : `curl -sS --cacert '${certificate}'`

/** Returns a curl command that works in any folder, because it names the fixture by its absolute path. */
async function curlLine(adapter: string, certificate: string | undefined): Promise<string> {
  return [
    `${curlOf(certificate)} '${adapter}${PATH}' ${CREDENTIALS}`,
    `-H 'Content-Type: multipart/mixed; boundary=${await readBoundary()}'`,
    `--data-binary '@${FIXTURE}'`,
  ].join(' ')
}

/**
 * Returns a shell loop that posts a batch for each school. Each batch gets its own id, because the adapter takes a repeated id for a
 * resend.
 */
async function schoolsLine(adapter: string, certificate: string | undefined): Promise<string> {
  const boundary = await readBoundary()
  const [, prefix = '', id = '', rest = ''] = /^(.*?)([0-9a-f]{8}-[0-9a-f]{4})(.*)$/.exec(boundary) ?? []
  return [
    `for school in $(seq 3001 ${3000 + SCHOOLS}); do id=$(date +%d%H%M%S)-$school;`,
    `sed "s/${id}/$id/" '${FIXTURE}' |`,
    `${curlOf(certificate)} -o /dev/null -w "school $school: %{http_code}\\n" '${adapter}${PATH}' ${CREDENTIALS}`,
    `-H "${SCHOOL_HEADER}: $school" -H "Content-Type: multipart/mixed; boundary=${prefix}$id${rest}"`,
    '--data-binary @-; done',
  ].join(' ')
}

/** Returns a `rollout` command that uses this installation and works in any folder. */
function rolloutLine(command: string, config: string): string {
  const [node = '', program = ''] = process.argv
  return `'${node}' '${program}' rollout ${command} --config '${config}'`
}

async function readBoundary(): Promise<string> {
  return /^--(\S+)/.exec(await readFile(FIXTURE, 'utf8'))?.[1] ?? ''
}

const POLL_MS = 500

async function watchSplit(served: ServedMarks, signal: AbortSignal): Promise<void> {
  let last = 0
  while (!signal.aborted) {
    // While the sandbox does not respond, there are no new marks to count.
    const { V2, V3 } = await served.read().catch(() => served.last())
    if (V2 + V3 > last) console.log(`served: V2 ${V2} marks · V3 ${V3} marks`)
    last = V2 + V3
    await delay(POLL_MS, undefined, { signal }).catch(() => undefined)
  }
}
