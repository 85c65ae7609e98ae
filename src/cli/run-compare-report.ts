import { stat } from 'node:fs/promises'

import { type ReportFormat, writeReport } from '../compare/report/index.ts'
import { outcomeOf } from '../compare/run-document.ts'
import { replaceFile } from '../compare/run/index.ts'
import { AdapterError, describeFileError } from '../errors.ts'
import { type FoundRun, listRuns, readRun } from './comparing/find-runs.ts'
import type { RolloutTarget } from './rollout/open-target.ts'
import { formatGivenText, formatTable } from './text-table.ts'

/** The flags of `compare report`. */
export interface CompareReportOptions extends Pick<RolloutTarget, 'config' | 'journal'> {
  readonly format: ReportFormat
  readonly exact?: boolean
  readonly out?: string
  readonly dir: string
  readonly list?: boolean
}

/** Writes the report of a run, or lists the runs there are; returns the exit status. */
export async function runCompareReport(
  run: string | undefined,
  { format, exact, out, dir, list, ...target }: CompareReportOptions,
): Promise<number> {
  if (list === true) return printRuns(dir)
  if (run === undefined)
    throw new AdapterError(
      'ADP_USAGE',
      'Name a run: an id, a path, latest, or live:<partner>. --list shows the runs there are.',
    )
  const report = writeReport(await readRun(run, dir, target), format, { exact: exact === true })
  if (out === undefined) process.stdout.write(report)
  else await write(out, report)
  return 0
}

async function write(file: string, report: string): Promise<void> {
  try {
    // As root, a rename would replace a device such as /dev/stdout.
    if ((await stat(file).catch(() => undefined))?.isFile() === false)
      throw new AdapterError('ADP_USAGE', `${file} is not a file. Without --out the report is printed.`)
    await replaceFile(file, report)
  } catch (cause) {
    if (cause instanceof AdapterError) throw cause
    throw new AdapterError('ADP_USAGE', `${file} cannot be written: ${describeFileError(cause)}.`, { cause })
  }
  console.error(`markbridge: the report is in ${file}`)
}

async function printRuns(folder: string): Promise<number> {
  const runs = await listRuns(folder)
  if (runs.length === 0) {
    console.error(`markbridge: there are no runs in ${folder}`)
    return 0
  }
  const header = ['run', 'partner', 'from', 'to', 'outcome', 'complete', 'ended']
  console.log(formatTable([header, ...runs.map(toRow)]))
  return 0
}

function toRow({ name, document, fault = '' }: FoundRun): readonly string[] {
  if (document === undefined)
    return [
      formatGivenText(name),
      '',
      '',
      '',
      `not a run: ${formatGivenText(fault.replace(/^.* cannot be read: /, ''))}`,
    ]
  const { partner, from, to, complete, endedAt } = document
  const given = formatGivenText(partner ?? '')
  return [formatGivenText(name), given, from, to, outcomeOf(document), complete ? 'yes' : 'no', endedAt]
}
