import { type Command, Option } from 'commander'

import { type ReportFormat, reportFormats, writeReport } from '../../compare/report/write-report.ts'
import type { RunDocument, StepAdvice } from '../../compare/run-document.ts'
import { isRunId, openRuns, readRunFile } from '../../compare/run/read-runs.ts'
import { AdapterError } from '../../errors.ts'
import { writeResult } from '../files.ts'
import { configOption, type Target } from '../options.ts'
import { readLiveResults } from '../rollout/describe-partner.ts'
import { readStore } from '../rollout/open-store.ts'
import { loadTarget } from '../target.ts'
import { type Answer, formatGivenText, formatTable, print, RUNS } from '../text.ts'

const examples = `
Examples:
  markbridge compare report --list
  markbridge compare report run-20260327-160000-9f3c --out report.html
  markbridge compare report ./runs/acme.json --format junit --out compare.xml
  markbridge compare report live:acme --out live.html
Name a run by the id that compare run printed, by the path of its file, with
latest, or with live:<partner> for the results of live comparison. Counts are
rounded to multiples of 5. --exact prints exact counts, which only people who
may see figures about single learners should get.
Exit status: 0 the report was written, whatever it says; 2 for wrong usage or a
file that cannot be read.`

export function addCompareReport(command: Command, exitWith: (status: number) => void): void {
  command
    .argument('[run]', 'id of a run, latest, the path of its file, or live:<partner>')
    .addOption(new Option('--format <format>', 'form of the report').choices(reportFormats).default('html'))
    .option('--exact', 'print counts as they are, not rounded to multiples of 5')
    .option('--out <file>', 'write to this file (default: standard output)')
    .option('--force', 'replace the file of --out')
    .option('--dir <dir>', 'folder of the runs', RUNS)
    .addOption(configOption('configuration file that names the journal for live:<partner>'))
    .option('--journal <url>', 'journal for live:<partner> (default: the journal in the configuration)')
    .addOption(
      new Option('--json', 'print JSON: the report (--format json), or the list').implies({ format: 'json' }),
    )
    .option('--list', 'list the runs of the folder, newest first')
    .addHelpText('after', examples)
    .action(async (run: string | undefined, options: CompareReportOptions, own: Command) => {
      if (options.list === true) print(own, await listAnswer(options.dir))
      else await runCompareReport(run, options)
      exitWith(0)
    })
}

interface CompareReportOptions extends Pick<Target, 'config' | 'journal'> {
  readonly format: ReportFormat
  readonly exact?: boolean
  readonly out?: string
  readonly dir: string
  readonly force?: boolean
  readonly list?: boolean
}

async function runCompareReport(
  run: string | undefined,
  { format, exact, out, dir, force, ...target }: CompareReportOptions,
): Promise<void> {
  if (run === undefined)
    throw new AdapterError(
      'ADP_USAGE',
      'No run is named. Nothing was written. Name an id, a path, latest or live:<partner>. --list shows the runs.',
    )
  const { document, advice } = await readRun(run, dir, target)
  const report = writeReport(document, format, { exact: exact === true, advice })
  if (out === undefined) process.stdout.write(report)
  else {
    await writeResult(out, report, force)
    console.error(`markbridge: the report is in ${out}`)
  }
}

async function listAnswer(folder: string): Promise<Answer> {
  const runs = await openRuns(folder).list()
  const rows = runs.map(({ run, summary, fault }) => ({
    run,
    partner: summary?.partner ?? null,
    from: summary?.from ?? null,
    to: summary?.to ?? null,
    outcome: summary?.outcome ?? null,
    complete: summary?.complete ?? null,
    ended: summary?.endedAt ?? null,
    fault: fault === undefined ? null : `not a run: ${formatGivenText(fault)}`,
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

const LIVE = 'live:'

interface FoundRun {
  readonly document: RunDocument
  readonly advice?: StepAdvice
}

async function readRun(run: string, folder: string, target: Target): Promise<FoundRun> {
  if (run.startsWith(LIVE)) return readLiveRun(run.slice(LIVE.length), target)
  const runs = openRuns(folder)
  if (run !== 'latest') return { document: await (isRunId(run) ? runs.read(run) : readRunFile(run, run)) }
  const newest = (await runs.list()).find(({ summary }) => summary !== undefined)
  if (newest === undefined)
    throw new AdapterError(
      'ADP_USAGE',
      `${folder} contains no run. Nothing was written. Start a run with markbridge compare run.`,
    )
  return { document: await runs.read(newest.run) }
}

async function readLiveRun(partner: string, target: Target): Promise<FoundRun> {
  const config = await loadTarget(target)
  const [found] = await readStore(config, (store) => readLiveResults(config, store, partner))
  if (found !== undefined) return found
  throw new AdapterError(
    'ADP_USAGE',
    'Live comparison has no results for this partner yet. Nothing was written. Live comparison runs at shadow, and at later stages if partners[].check.v2 is set.',
  )
}
