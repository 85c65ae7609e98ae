import { type Command, InvalidArgumentError } from 'commander'

import type { CompareRecordingOptions, CompareRunOptions } from '../run-compare-run.ts'
import { addCompareLearn } from './compare-learn.ts'
import { addCompareReport } from './compare-report.ts'

const runExamples = `
Both services are asked for the marks of these days, V3 through the adapter's own read path, and set against each other record by
record. Nothing is written to either. What differs is read once more before it is called a difference.

Examples:
  markbridge compare run --v2 http://127.0.0.1:4020 --v3 http://127.0.0.1:4010 --from 2026-09-07 --to 2026-10-02
  markbridge compare run --config markbridge.yaml --partner acme --from 2025-09-01 --to 2026-07-22 --sample 10%
  markbridge compare run --config markbridge.yaml --partner acme --from 2026-09-07 --to 2026-10-02 --learners class.txt --noise
  markbridge compare run … --resume
  markbridge compare run --recording ./recordings

Credentials are read from MARKBRIDGE_SUBSCRIPTION_KEY and MARKBRIDGE_TOKEN; for V3, where it has others, from
MARKBRIDGE_V3_SUBSCRIPTION_KEY and MARKBRIDGE_V3_TOKEN, or from the partner. On a loopback address the default is the sandbox's.
Ctrl+C ends the run with a report of what was done; --resume goes on. A second Ctrl+C ends it at once.
Exit status: 0 same or equivalent; 1 something differs; 3 inconclusive (records unknown, the run incomplete, nothing compared); 2 for
wrong usage or configuration.`

/** The flags of both ways of `compare run`. */
type RunFlags = Omit<CompareRunOptions, 'from' | 'to'> &
  Partial<Pick<CompareRunOptions, 'from' | 'to'>> &
  Partial<Pick<CompareRecordingOptions, 'recording' | 'key'>>

/** Options of reads, which recordings have no use for. */
const onlyReads = ['from', 'to', 'learners', 'sample', 'registrations', 'noise', 'resume']

/** Adds `compare` with its subcommands. */
export function addCompare(compare: Command, exitWith: (status: number) => void): void {
  compare
    .command('run')
    .description('read both services for a range of days and compare what they answer')
    .option('--v2 <url>', 'base address of V2 (default: of the configuration)', readBase)
    .option('--v3 <url>', 'base address of V3 (default: of the configuration)', readBase)
    .option('--from <day>', 'first day, YYYY-MM-DD', readDay)
    .option('--to <day>', 'last day, YYYY-MM-DD', readDay)
    .option('--recording <dir>', 'compare recordings instead (markbridge record); no service is needed')
    .option('--key <source>', 'open recordings that are encrypted with the key of env:NAME or file:path')
    .option('--learners <file>', 'compare the marks of these learners only: one id a line')
    .option('--sample <share>', 'compare the marks of a share of the learners, such as 10%', readShare)
    .option('--registrations', 'compare the registrations of the learners as well')
    .option('--config <file>', 'configuration file with addresses, credentials and the partner')
    .option('--partner <id>', 'the partner whose settings count (default: the only one)')
    .option('--noise', 'read V2 twice: what it contradicts itself in is not a difference')
    .option('--resume [run]', 'go on with the newest run that was stopped, or with this one')
    .option('--out <dir>', 'folder of the reports', './data/compare')
    .option('--json', 'print one JSON document')
    .addHelpText('after', runExamples)
    .action(async ({ recording, key, from, to, ...options }: RunFlags, command: Command) => {
      if (recording !== undefined) {
        const given = onlyReads.filter((name) => command.getOptionValueSource(name) === 'cli')
        if (given.length > 0) command.error(`error: --${given.join(', --')} cannot be used with --recording`)
        const { runCompareRecording } = await import('../run-compare-run.ts')
        exitWith(await runCompareRecording({ ...options, recording, ...(key === undefined ? {} : { key }) }))
        return
      }
      if (from === undefined || to === undefined)
        command.error('error: name the days, --from <day> and --to <day>, or --recording <dir>')
      if (key !== undefined) command.error('error: --key is for --recording')
      const { runCompareRun } = await import('../run-compare-run.ts')
      exitWith(await runCompareRun({ ...options, from, to }))
    })
  addCompareReport(compare, exitWith)
  addCompareLearn(compare, exitWith)
}

function readBase(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new InvalidArgumentError('It must be an http or https address.')
  const { username, password, search, hash } = new URL(text)
  if (username + password + search + hash !== '')
    throw new InvalidArgumentError('It must have no user, password, query or fragment.')
  return text
}

function readDay(text: string): string {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== text)
    throw new InvalidArgumentError('A day is written YYYY-MM-DD.')
  return text
}

function readShare(text: string): number {
  const percent = Number(text.replace(/%$/, ''))
  if (!/^\d{1,3}(?:\.\d{1,3})?%?$/.test(text) || percent <= 0 || percent > 100)
    throw new InvalidArgumentError('A share is a number above 0 and up to 100, such as 10%.')
  return percent
}
