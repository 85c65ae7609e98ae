import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'

import { openSides, type OpenedSides } from '../app/compare/open-sides.ts'
import { systemClock } from '../clock.ts'
import { createOwnRules, type OwnRules } from '../compare/diff/index.ts'
import {
  type Checkpoint,
  DAY_MS,
  formatDay,
  isRunName,
  listLearners,
  openRunFiles,
  parseDay,
  parseLearnerList,
  readCheckpoint,
  type RunFiles,
  type RunReadsOptions,
  type RunResult,
  runReads,
  sampleLearners,
} from '../compare/run/index.ts'
import { outcomeOf, outcomeStatus } from '../compare/run-outcome.ts'
import { readEnvironment } from '../config/index.ts'
import { AdapterError, describeFileError, errorRules } from '../errors.ts'
import { isLoopback } from '../http/loopback.ts'
import { describeCause, describeFailure } from './comparing/describe-failure.ts'
import { formatRun } from './comparing/run-text.ts'
import { openTarget, type RunTarget, type TargetFlags } from './comparing/run-target.ts'
import { untilSignal } from './comparing/until-signal.ts'
import { Progress } from './progress.ts'

/** The flags of `compare run`. */
export interface CompareRunOptions extends TargetFlags {
  readonly from: string
  readonly to: string
  readonly learners?: string
  /** Percent. */
  readonly sample?: number
  readonly registrations?: boolean
  readonly noise?: boolean
  /** True: the newest run that can go on. */
  readonly resume?: boolean | string
  readonly out: string
  readonly json?: boolean
}

/** Time for a mark to become visible on the other side, before what differs is asked again. A stand-in shows it at once. */
const PAUSE_MS = { service: 1_000, loopback: 50 }

/** Compares both services, prints the result, and returns the exit status. */
export async function runCompareRun(options: CompareRunOptions): Promise<number> {
  try {
    return await compare(options)
  } catch (cause) {
    // Status 1 says that something differs: an error must not.
    if (!(cause instanceof AdapterError) || errorRules[cause.code].class === 'configuration') throw cause
    console.error(`markbridge: ${cause.message}`)
    return outcomeStatus.inconclusive
  }
}

async function compare(options: CompareRunOptions): Promise<number> {
  const [fromMs, toMs] = [parseDay(options.from) ?? 0, (parseDay(options.to) ?? 0) + DAY_MS]
  if (toMs <= fromMs) throw new AdapterError('ADP_USAGE', '--to is before --from.')
  if (options.learners !== undefined && options.sample !== undefined)
    throw new AdapterError('ADP_USAGE', 'Give --learners or --sample, not both: the list is the sample.')
  const target = await openTarget(options, readEnvironment())
  const listed = options.learners === undefined ? undefined : await readLearners(options.learners)
  const files = openRunFiles(options.out)
  const digest = digestOf(options, target, listed)
  const resumed = options.resume === undefined ? undefined : await findRun(files, options.resume, digest)
  const sampleKey = resumed?.sampleKey ?? randomBytes(16).toString('hex')
  const sides = openSides({
    ...target,
    onCodesUnknown: (status) =>
      console.error(
        `markbridge: V3's lookup of attendance codes answers ${status}, so the letters in reads.unmarkedCodes have no effect.`,
      ),
  })
  const stopping = untilSignal()
  try {
    const { signal } = stopping
    const { sample } = options
    const learners = sample === undefined ? listed : await sampleOf(sides, sample, sampleKey, signal)
    const result = await run(target, sides, signal, {
      ...{ files, digest, resumed, sampleKey },
      selection: {
        ...{ partner: target.partnerName, fromMs, toMs },
        learners: learners === undefined ? undefined : listLearners(learners),
        registrations: options.registrations === true,
        noise: options.noise === true,
        rules: rulesOf(target),
      },
    })
    const text = options.json === true ? JSON.stringify(result.document) : formatRun(result)
    console.log(text)
    if (result.end.kind !== 'done' || result.failures.length > 0)
      console.error(`markbridge: ${describeFailure(result)}`)
    return outcomeStatus[outcomeOf(result.document)]
  } finally {
    stopping.stop()
    await sides.close()
  }
}

/** The service's own words are not shown. */
async function sampleOf(
  { learners }: OpenedSides,
  percent: number,
  key: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  try {
    return await sampleLearners(learners, percent, key, signal)
  } catch (cause) {
    if (signal.aborted) throw new AdapterError('ADP_BUDGET_EXCEEDED', 'The run was stopped before it began.')
    if (!(cause instanceof AdapterError)) throw cause
    const why = describeCause('V3', cause)
    throw new AdapterError(cause.code, `--sample needs V3's list of learners. ${why} Or give --learners.`, {
      cause,
    })
  }
}

/** The partner's own rules; what expired before today counts again. */
function rulesOf({ partner }: RunTarget): OwnRules | undefined {
  const { rules } = partner.compare
  return rules.length === 0 ? undefined : createOwnRules(rules, formatDay(systemClock.wallMs()))
}

type Prepared = Pick<RunReadsOptions, 'files' | 'digest' | 'resumed' | 'sampleKey' | 'selection'>

async function run(
  { v2, config }: RunTarget,
  sides: OpenedSides,
  signal: AbortSignal,
  prepared: Prepared,
): Promise<RunResult> {
  const isLocal = isLoopback(v2.hostname) && isLoopback(config.upstreams.v3.baseUrl.hostname)
  let progress: Progress | undefined
  let [done, records] = [0, 0]
  try {
    return await runReads(
      {
        ...prepared,
        marks: { v2: sides.v2, v3: sides.v3 },
        registrations: sides.registrations,
        clock: systemClock,
        pauseMs: isLocal ? PAUSE_MS.loopback : PAUSE_MS.service,
        onProgress: (now) => {
          records = now.records
          if (progress === undefined) progress = openProgress(now.days, now.daysDone, () => records)
          else progress.advance(undefined, now.daysDone - done)
          done = now.daysDone
        },
        onFailure: () => undefined,
      },
      signal,
    )
  } finally {
    progress?.stop()
  }
}

function openProgress(days: number, before: number, records: () => number): Progress {
  return new Progress({
    output: process.stderr,
    status: process.stderr,
    isTerminal: process.stderr.isTTY && !readEnvironment().isDumbTerminal,
    total: days,
    nowMs: () => performance.now(),
    unit: 'days',
    before,
    steady: { detail: () => `${records().toLocaleString('en')} records`, everyMs: 10_000 },
  })
}

async function readLearners(path: string): Promise<readonly string[]> {
  try {
    return parseLearnerList(await readFile(path, 'utf8'))
  } catch (cause) {
    if (cause instanceof AdapterError)
      throw new AdapterError(cause.code, `${path}: ${cause.message}`, { cause })
    throw new AdapterError('ADP_USAGE', `${path} cannot be read: ${describeFileError(cause)}.`, { cause })
  }
}

/** The checkpoint to go on with. Error: `ADP_USAGE` where there is none, or one of other options. */
async function findRun(files: RunFiles, resume: boolean | string, digest: string): Promise<Checkpoint> {
  const name = typeof resume === 'string' ? resume : undefined
  if (name !== undefined && !isRunName(name))
    throw new AdapterError('ADP_USAGE', '--resume takes the name of a run, such as run-20260907-063012-9f3c.')
  const text = await files.readCheckpoint(name)
  if (text === undefined)
    throw new AdapterError(
      'ADP_USAGE',
      `There is no ${name === undefined ? 'run that was stopped' : `stopped run ${name}`} in the folder of --out.`,
    )
  const checkpoint = readCheckpoint(text)
  if (checkpoint.options === digest) return checkpoint
  throw new AdapterError(
    'ADP_USAGE',
    `${checkpoint.run} compares something else: --resume needs the addresses, days, learners, partner and flags that it began with.`,
  )
}

/** SHA-256 over all that decides which records are compared, and how. */
function digestOf(
  { from, to, sample, registrations, noise }: CompareRunOptions,
  { config, partner, partnerName, v2 }: RunTarget,
  listed: readonly string[] | undefined,
): string {
  const options = [
    ...[v2.href, config.upstreams.v3.baseUrl.href, partnerName, partner.reads, partner.compare.rules],
    ...[from, to, sample ?? null, registrations === true, noise === true, listed?.toSorted() ?? null],
  ]
  return createHash('sha256').update(JSON.stringify(options)).digest('hex')
}
