import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'

import { type Command, Option } from 'commander'

import { isCompared, toRunDocument } from '../../compare/evidence/read-evidence.ts'
import { type ReportFormat, reportFormats, writeReport } from '../../compare/report/write-report.ts'
import {
  MAX_DOCUMENT_BYTES,
  outcomeOf,
  readRunDocument,
  type RunDocument,
} from '../../compare/run-document.ts'
import { AdapterError, describeFileError } from '../../errors.ts'
import { readStore } from '../rollout/open-store.ts'
import { type Answer, formatGivenText, formatTable, print, RUNS } from '../text.ts'
import { configOption, type Target } from '../options.ts'
import { loadTarget } from '../target.ts'
import { writeResult } from '../files.ts'

const examples = `
Examples:
  markbridge compare report --list
  markbridge compare report run-20260327-160000-9f3c --out report.html
  markbridge compare report ./runs/acme.json --format junit --out compare.xml
  markbridge compare report live:acme --out live.html
A run is the id that compare run printed, the path of its file, latest, or
live:<partner> for what live comparison has found. Counts are rounded to
multiples of 5; --exact prints them as they are, for those who may see figures
about single learners.
Exit status: 0 the report was written, whatever it says; 2 for wrong usage or a
file that cannot be read.`

/** Adds `compare report`. */
export function addCompareReport(command: Command, exitWith: (status: number) => void): void {
  command
    .argument('[run]', 'id of a run, latest, the path of its file, or live:<partner>')
    .addOption(new Option('--format <format>', 'form of the report').choices(reportFormats).default('html'))
    .option('--exact', 'print counts as they are, not rounded to multiples of 5')
    .option('--out <file>', 'write to this file (default: standard output)')
    .option('--force', 'replace the file of --out')
    .option('--dir <dir>', 'folder of the runs', RUNS)
    .addOption(configOption('file with the journal of a live:<partner>'))
    .option('--journal <url>', 'journal of a live:<partner> (default: of the configuration)')
    .addOption(
      new Option('--json', 'print one JSON document: --format json, or the list').implies({ format: 'json' }),
    )
    .option('--list', 'list the runs of the folder, newest first')
    .addHelpText('after', examples)
    .action(async (run: string | undefined, options: CompareReportOptions, own: Command) => {
      if (options.list === true) print(own, await listAnswer(options.dir))
      else await runCompareReport(run, options)
      exitWith(0)
    })
}

/** The flags of `compare report`. */
interface CompareReportOptions extends Pick<Target, 'config' | 'journal'> {
  readonly format: ReportFormat
  readonly exact?: boolean
  readonly out?: string
  readonly dir: string
  readonly force?: boolean
  readonly list?: boolean
}

/** Writes the report of a run. */
async function runCompareReport(
  run: string | undefined,
  { format, exact, out, dir, force, ...target }: CompareReportOptions,
): Promise<void> {
  if (run === undefined)
    throw new AdapterError(
      'ADP_USAGE',
      'Name a run: an id, a path, latest, or live:<partner>. --list shows the runs there are.',
    )
  const report = writeReport(await readRun(run, dir, target), format, { exact: exact === true })
  if (out === undefined) process.stdout.write(report)
  else {
    await writeResult(out, report, force)
    console.error(`markbridge: the report is in ${out}`)
  }
}

const unusable = (what: string, cause: unknown, more = ''): AdapterError =>
  new AdapterError('ADP_USAGE', `${what}: ${describeFileError(cause)}.${more}`, { cause })

async function listAnswer(folder: string): Promise<Answer> {
  const runs = await listRuns(folder)
  const rows = runs.map(({ name, document, fault }) => ({
    run: name,
    partner: document?.partner ?? null,
    from: document?.from ?? null,
    to: document?.to ?? null,
    outcome: document === undefined ? null : outcomeOf(document),
    complete: document?.complete ?? null,
    ended: document?.endedAt ?? null,
    fault: fault ?? null,
  }))
  const table = (): string =>
    formatTable(rows, [
      ['run', ({ run }) => formatGivenText(run)],
      ['partner', ({ partner }) => formatGivenText(partner ?? '')],
      ['from', ({ from }) => from ?? ''],
      ['to', ({ to }) => to ?? ''],
      ['outcome', ({ outcome, fault }) => outcome ?? fault ?? ''],
      ['complete', ({ complete }) => (complete === null ? '' : complete ? 'yes' : 'no')],
      ['ended', ({ ended }) => ended ?? ''],
    ])
  return {
    document: { runs: rows },
    text: () => (rows.length === 0 ? `there are no runs in ${folder}` : table()),
    isRefusal: rows.length === 0,
  }
}

/** A file of a folder of runs; `fault` says why it is not a run. */
interface FoundRun {
  readonly name: string
  readonly document?: RunDocument
  readonly fault?: string
}

/** Names that `compare run` gives. A name with a folder, or with another end, is a path. */
const runId = /^[\w][\w.-]*$/

const LIVE = 'live:'

/**
 * Reads a run by its id, by `latest`, by the path of its file, or of `live:<partner>` what live comparison has found. Error: ADP_USAGE where
 * there is no such run, or no run in the file.
 */
async function readRun(run: string, folder: string, target: Target): Promise<RunDocument> {
  if (run.startsWith(LIVE)) return readLiveRun(run.slice(LIVE.length), target)
  if (run === 'latest') {
    const [newest] = (await listRuns(folder)).flatMap(({ document }) => document ?? [])
    if (newest === undefined) throw new AdapterError('ADP_USAGE', `${folder} has no runs.`)
    return newest
  }
  const isId = runId.test(run) && !run.endsWith('.json')
  return readFrom(isId ? join(folder, `${run}.json`) : run, isId ? `The run ${run}` : run)
}

/** The runs of a folder, the newest first, then the files that are none. A folder that does not exist has no runs. */
async function listRuns(folder: string): Promise<readonly FoundRun[]> {
  const files = await readdir(folder).catch((cause: unknown) => {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return []
    throw unusable(`${folder} cannot be read`, cause)
  })
  const found: FoundRun[] = []
  for (const file of files.sort()) {
    if (!file.endsWith('.json') || file.endsWith('.checkpoint.json')) continue
    const name = basename(file, '.json')
    try {
      found.push({ name, document: await readFrom(join(folder, file), name) })
    } catch (cause) {
      if (!(cause instanceof AdapterError)) throw cause
      const why = cause.message.replace(/^.* cannot be read: /, '')
      found.push({ name, fault: `not a run: ${formatGivenText(why)}` })
    }
  }
  const endOf = ({ document }: FoundRun): number => Date.parse(document?.endedAt ?? '1970-01-01')
  return found.sort((one, other) => endOf(other) - endOf(one))
}

async function readFrom(path: string, name: string): Promise<RunDocument> {
  const fail = (cause: unknown): never => {
    const more = ' compare report --list shows the runs there are.'
    throw unusable(`${name} cannot be read from ${path}`, cause, more)
  }
  const { size } = await stat(path).catch(fail)
  if (size > MAX_DOCUMENT_BYTES)
    throw new AdapterError('ADP_USAGE', `${name} cannot be read: it is larger than a run can be (64 MiB).`)
  return readRunDocument(await readFile(path, 'utf8').catch(fail), name)
}

/** What live comparison has found of a partner at its latest stage and share, as the document of a run. Error: `ADP_USAGE` where it is nothing. */
async function readLiveRun(partner: string, target: Target): Promise<RunDocument> {
  const kept = await readStore(await loadTarget(target), ({ evidence }) => evidence.read(partner))
  const [latest] = kept.filter(isCompared).toSorted((one, other) => other.lastMs - one.lastMs)
  if (latest !== undefined) return toRunDocument(latest)
  throw new AdapterError(
    'ADP_USAGE',
    'Live comparison has found nothing about this partner yet. It runs at shadow, and later with partners[].check.v2.',
  )
}
