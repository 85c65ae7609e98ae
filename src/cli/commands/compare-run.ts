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
  markbridge compare run --recording ./recordings --key env:RECORDING_KEY

Credentials are read from MARKBRIDGE_SUBSCRIPTION_KEY and MARKBRIDGE_TOKEN. If
V3 has other credentials, they are read from MARKBRIDGE_V3_SUBSCRIPTION_KEY and
MARKBRIDGE_V3_TOKEN, or from the settings of the partner. On a loopback address
the default is the credentials of the sandbox.
Ctrl+C stops the run and prints a report of what was compared. A second Ctrl+C
ends the program at once.
Exit status: 0 same or equivalent; 1 something differs; 3 inconclusive (records
unknown, the run incomplete, nothing compared); 2 wrong usage or configuration.`

interface Flags extends SideFlags {
  readonly since?: string
  readonly until?: string
  readonly recording?: string
  readonly key?: string
  readonly learners?: string
  readonly registrations?: boolean
  readonly noise?: boolean
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
    .addOption(recording.conflicts(['v2', 'since', 'until', 'learners', 'registrations', 'noise']))
    .option('--key <source>', 'open the recordings with the key of env:NAME or file:path')
    .option('--learners <file>', 'compare the marks of these learners only: a file with one id per line')
    .option('--registrations', 'compare the registrations of the learners as well')
    .addOption(configOption('file with addresses, credentials and the partner'))
    .option('--partner <id>', 'partner whose settings apply (default: the only one)')
    .option('--noise', 'read V2 twice, and ignore fields that differ between its two replies')
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

/**
 * The pause before a second read, in milliseconds, in which a new mark can become visible on the other side. The sandbox shows it at once.
 */
const PAUSE_MS = { service: 1_000, loopback: 50 }

/** Reports an error of a service with the exit status of an inconclusive run, because exit status 1 means that something differs. */
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
  const sides = openSides({
    ...target,
    onCodesUnknown: (status) =>
      console.error(
        `markbridge: the lookup of attendance codes in V3 failed with status ${status}. The letters in reads.unmarkedCodes have no effect in this run. If the run must leave out rows with these codes, put their ids into reads.unmarkedCodes.`,
      ),
  })
  const { registrations = false, noise = false } = options
  const rules = rulesOf(target.partner)
  const isLocal = isLoopback(target.v2.hostname) && isLoopback(target.config.upstreams.v3.baseUrl.hostname)
  try {
    const result = await runWith('days', options, {
      source: createWindowSource({
        ...{ fromMs: Date.parse(from), toMs: Date.parse(to) + DAY_MS },
        ...{ sides, registrations, noise, rules, clock: systemClock },
        learners: listed && listLearners(listed),
        pauseMs: isLocal ? PAUSE_MS.loopback : PAUSE_MS.service,
      }),
      header: {
        ...{ kind: 'reads', partner: target.partnerName, from, to, noise, rules: rules.all },
        services: { v2: target.v2.href, v3: target.config.upstreams.v3.baseUrl.href },
      },
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
  return probe(url, config, first.side === 'V2' ? 'v2' : 'v3').then(
    () => undefined,
    (cause: unknown) => `${url.href}: ${describeConnection(cause)}`,
  )
}

/** Compares recordings. Posts nothing, and reads V3 only if `--v3` is given. */
async function compareRecordings(recording: string, options: RunFlags): Promise<number> {
  const folders = await listRecordings(recording)
  const key = await readRecordingKey(options.key)
  // `openSides` requires an address of V2, but no request is sent to V2.
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
        `markbridge: ${reads} recorded read(s) were not compared. To compare them with the current answers of V3, name V3 with --v3 <url>.`,
      )
    return outcomeStatus[outcomeOf(document)]
  } finally {
    await sides?.close()
  }
}

async function runWith(
  unit: string,
  flags: RunFlags,
  run: Pick<RunOptions, 'source' | 'header'>,
): Promise<RunResult> {
  const stopping = untilSignal()
  let progress: Progress | undefined
  try {
    const result = await runComparison(
      {
        ...run,
        folder: flags.dir,
        clock: systemClock,
        onProgress: ({ done, total, records }) => {
          progress ??= showProgress({ total, unit, everyMs: 10_000 })
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

/** Returns the partner's rules as of today. A difference counts again once its rule has expired. */
function rulesOf({ compare: { rules } }: PartnerConfig): OwnRules {
  return createOwnRules(rules, formatDay(systemClock.wallMs()))
}
