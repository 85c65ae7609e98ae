import { createHash } from 'node:crypto'

import { type Command, Option } from 'commander'
import * as z from 'zod'

import { openSides } from '../../app/open-sides.ts'
import { toPartner } from '../../app/partners.ts'
import { systemClock } from '../../clock.ts'
import { createOwnRules, type OwnRules } from '../../compare/diff/findings.ts'
import { listRecordings } from '../../compare/recording/recording-files.ts'
import { createRecordingSource } from '../../compare/recording/recording-source.ts'
import { outcomeOf, outcomeStatus } from '../../compare/run-document.ts'
import { listLearners, parseLearnerList } from '../../compare/run/queries.ts'
import { runComparison, type RunOptions, type RunResult } from '../../compare/run/run-comparison.ts'
import { type Checkpoint, isRunName, openRunFiles, type RunFiles } from '../../compare/run/run-files.ts'
import { createWindowSource } from '../../compare/run/window-source.ts'
import { DAY_MS, formatDay } from '../../compare/run/windows.ts'
import { type PartnerConfig, readEnvironment } from '../../config/index.ts'
import { AdapterError, errorRules } from '../../errors.ts'
import { describeConnection } from '../../http/connection-error.ts'
import { isLoopback } from '../../http/address.ts'
import { readGivenFile, readRecordingKey } from '../files.ts'
import { configOption, readAs, readBase } from '../options.ts'
import { probe } from '../probe.ts'
import { type Progress, showProgress } from '../progress.ts'
import { describeFailure, formatRun } from '../run-text.ts'
import { untilSignal } from '../signals.ts'
import { type ResolvedSides, resolvePartner, resolveSides, type SideFlags } from '../target.ts'
import { type Answer, print, RUNS } from '../text.ts'

const examples = `
Reads the marks of these days from both services, V3 through the adapter's own
read path, and compares them record by record. Nothing is written to either
service. A difference counts only if a second read confirms it.

Examples:
  markbridge compare run --v2 http://127.0.0.1:4020 --v3 http://127.0.0.1:4010 \\
    --since 2026-09-07 --until 2026-10-02
  markbridge compare run --partner acme --since 2025-09-01 --until 2026-07-22
  markbridge compare run --partner acme --since 2026-09-07 --until 2026-10-02 \\
    --learners class.txt --noise
  markbridge compare run … --resume
  markbridge compare run --recording ./recordings --key env:RECORDING_KEY

Credentials are read from MARKBRIDGE_SUBSCRIPTION_KEY and MARKBRIDGE_TOKEN; for
V3, if it has others, from MARKBRIDGE_V3_SUBSCRIPTION_KEY and
MARKBRIDGE_V3_TOKEN, or from the partner. On a loopback address the default is
the sandbox's.
Ctrl+C stops the run and prints a report of what was compared; --resume
continues the run. A second Ctrl+C ends the program at once.
Exit status: 0 same or equivalent; 1 something differs; 3 inconclusive (records
unknown, the run incomplete, nothing compared); 2 wrong usage or configuration.`

interface Flags extends SideFlags {
  /** The first day, as `YYYY-MM-DD`. */
  readonly since?: string
  readonly until?: string
  readonly recording?: string
  /** The source of the key of the recordings: `env:NAME` or `file:path`. */
  readonly key?: string
  readonly learners?: string
  readonly registrations?: boolean
  readonly noise?: boolean
  /** The name of the run to resume, or `true` for the newest run that was stopped. */
  readonly resume?: boolean | string
  readonly dir: string
}

interface RunFlags extends Flags {
  readonly onDone: (answer: Answer) => void
}

export function addCompareRun(command: Command, exitWith: (status: number) => void): void {
  const recording = new Option(
    '--recording <dir>',
    'compare recordings instead (markbridge record); no service is needed',
  )
  command
    .option('--v2 <url>', 'base address of V2 (default: of the configuration)', readBase)
    .option('--v3 <url>', 'base address of V3 (default: of the configuration)', readBase)
    .option('--since <day>', 'first day, YYYY-MM-DD', readDay)
    .option('--until <day>', 'last day, YYYY-MM-DD', readDay)
    .addOption(recording.conflicts(['v2', 'since', 'until', 'learners', 'registrations', 'noise', 'resume']))
    .option('--key <source>', 'open the recordings with the key of env:NAME or file:path')
    .option('--learners <file>', 'compare the marks of these learners only: one id a line')
    .option('--registrations', 'compare the registrations of the learners as well')
    .addOption(configOption('file with addresses, credentials and the partner'))
    .option('--partner <id>', 'the partner whose settings count (default: the only one)')
    .option('--noise', 'read V2 twice, and ignore fields that differ between its two replies')
    .option('--resume [run]', 'resume the newest run that was stopped, or this run')
    .option('--dir <dir>', 'folder of the runs', RUNS)
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples)
    .action(async (flags: Flags, own: Command) => {
      const { recording: folder, since, until, key } = flags
      const run = { ...flags, onDone: (answer: Answer) => print(own, answer) }
      if (folder !== undefined) {
        exitWith(await compareRecordings(folder, run))
        return
      }
      if (since === undefined || until === undefined)
        command.error('error: name the days, --since <day> and --until <day>, or --recording <dir>')
      if (key !== undefined) command.error('error: --key requires --recording')
      if (until < since) command.error('error: --until is before --since')
      exitWith(await compareDays(since, until, run).catch(toInconclusive))
    })
}

const readDay = readAs(z.iso.date(), 'The day must have the form YYYY-MM-DD.')

/** The time that a mark gets to become visible on the other side before a difference is read again. The sandbox shows a mark at once. */
const PAUSE_MS = { service: 1_000, loopback: 50 }

/** Reports an error of a service with the status of an inconclusive run, because exit status 1 means that something differs. */
function toInconclusive(cause: unknown): number {
  if (!(cause instanceof AdapterError) || errorRules[cause.code].class === 'configuration') throw cause
  console.error(`markbridge: ${cause.message}`)
  return outcomeStatus.inconclusive
}

async function compareDays(from: string, to: string, options: RunFlags): Promise<number> {
  const target = await resolveSides(options, readEnvironment())
  const listed =
    options.learners === undefined
      ? undefined
      : parseLearnerList((await readGivenFile(options.learners)).toString('utf8'), options.learners)
  const files = openRunFiles(options.dir)
  const digest = digestOf(options, target, listed)
  const resumed = options.resume === undefined ? undefined : await findRun(files, options.resume, digest)
  const sides = openSides({
    ...target,
    onCodesUnknown: (status) =>
      console.error(
        `markbridge: V3's lookup of attendance codes failed with ${status}, so the letters in reads.unmarkedCodes have no effect.`,
      ),
  })
  const { registrations = false, noise = false } = options
  const rules = rulesOf(target.partner)
  const isLocal = isLoopback(target.v2.hostname) && isLoopback(target.config.upstreams.v3.baseUrl.hostname)
  try {
    const result = await runWith('days', options, {
      source: createWindowSource({
        ...{ fromMs: Date.parse(from), toMs: Date.parse(to) + DAY_MS },
        ...{ sides, registrations, noise, rules, resumed, clock: systemClock },
        learners: listed && listLearners(listed),
        pauseMs: isLocal ? PAUSE_MS.loopback : PAUSE_MS.service,
      }),
      header: {
        ...{ kind: 'reads', partner: target.partnerName, from, to, noise, rules: rules.all },
        services: { v2: target.v2.href, v3: target.config.upstreams.v3.baseUrl.href },
      },
      checkpoint: { options: digest, resumed },
    })
    if (result.kind !== 'done' || result.failures.length > 0)
      console.error(`markbridge: ${describeFailure(result, await findCause(result, target))}`)
    return outcomeStatus[outcomeOf(result.document)]
  } finally {
    await sides.close()
  }
}

async function findCause(
  { failures: [first] }: RunResult,
  { v2, config }: ResolvedSides,
): Promise<string | undefined> {
  if (first === undefined) return undefined
  const url = first.side === 'V2' ? v2 : config.upstreams.v3.baseUrl
  return probe(url).then(
    () => undefined,
    (cause: unknown) => `${url.href}: ${describeConnection(cause)}`,
  )
}

/** Posts nothing, and reads V3 only if `--v3` is given. */
async function compareRecordings(recording: string, options: RunFlags): Promise<number> {
  const folders = await listRecordings(recording)
  const key = await readRecordingKey(options.key)
  // `openSides` needs an address of V2 as well, but no call to V2 is made.
  const target =
    options.v3 === undefined
      ? undefined
      : await resolveSides({ ...options, v2: new URL('http://127.0.0.1') }, readEnvironment())
  const { config, partner, partnerName } = target ?? (await resolvePartner(options))
  const sides = target && openSides({ ...target, onCodesUnknown: () => undefined })
  const rules = rulesOf(partner)
  const source = createRecordingSource(folders, {
    partner: toPartner(partner, undefined, undefined, config),
    ...{ key, rules, v3: sides?.adapter, nowMs: Date.now },
  })
  try {
    const services = target === undefined ? null : { v2: null, v3: target.config.upstreams.v3.baseUrl.href }
    const header = {
      ...({ kind: 'recording', partner: partnerName, noise: false, rules: rules.all } as const),
      services,
    } as const
    const { document } = await runWith('exchanges', options, { source, header })
    const reads = source.unaskedReads()
    if (reads > 0)
      console.error(
        `markbridge: ${reads} recorded read(s) were not compared. To compare them with V3's present answers, name V3 with --v3 <url>.`,
      )
    return outcomeStatus[outcomeOf(document)]
  } finally {
    await sides?.close()
  }
}

async function runWith(
  unit: string,
  flags: RunFlags,
  run: Pick<RunOptions, 'source' | 'header' | 'checkpoint'>,
): Promise<RunResult> {
  const stopping = untilSignal()
  let progress: Progress | undefined
  try {
    const result = await runComparison(
      {
        ...run,
        files: openRunFiles(flags.dir),
        clock: systemClock,
        onProgress: ({ done, total, records }) => {
          progress ??= showProgress({ total, unit, before: done, everyMs: 10_000 })
          progress.advance(done, `${records.toLocaleString('en')} records`)
        },
      },
      stopping.signal,
    )
    progress?.stop()
    flags.onDone({ document: result.document, text: () => formatRun(result) })
    return result
  } finally {
    progress?.stop()
    stopping.stop()
  }
}

/** Returns the partner's own rules for today, because a difference counts again once its rule has expired. */
function rulesOf({ compare: { rules } }: PartnerConfig): OwnRules {
  return createOwnRules(rules, formatDay(systemClock.wallMs()))
}

/** Throws `ADP_USAGE` if there is no checkpoint, or if the stopped run had other options. */
async function findRun(files: RunFiles, resume: boolean | string, digest: string): Promise<Checkpoint> {
  const name = typeof resume === 'string' ? resume : undefined
  if (name !== undefined && !isRunName(name))
    throw new AdapterError('ADP_USAGE', '--resume takes the name of a run, such as run-20260907-063012-9f3c.')
  const checkpoint = await files.readCheckpoint(name)
  if (checkpoint === undefined)
    throw new AdapterError(
      'ADP_USAGE',
      `There is no ${name === undefined ? 'run that was stopped' : `stopped run ${name}`} in the folder of --dir. Start a run without --resume.`,
    )
  if (checkpoint.options === digest) return checkpoint
  throw new AdapterError(
    'ADP_USAGE',
    `${checkpoint.run} was started with other options. Nothing was compared. Give --resume the addresses, days, learners, partner and flags of that run.`,
  )
}

/** Returns the SHA-256 of every option that decides which records are compared, and how. */
function digestOf(
  { since, until, registrations, noise }: Flags,
  { config, partner, partnerName, v2 }: ResolvedSides,
  listed: readonly string[] | undefined,
): string {
  const options = [
    ...[v2.href, config.upstreams.v3.baseUrl.href, partnerName, partner.reads, partner.compare.rules],
    ...[since, until, registrations === true, noise === true, listed?.toSorted() ?? null],
  ]
  return createHash('sha256').update(JSON.stringify(options)).digest('hex')
}
