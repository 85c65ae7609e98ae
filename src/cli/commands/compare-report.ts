import { type Command, Option } from 'commander'

import type { CompareReportOptions } from '../run-compare-report.ts'

const examples = `
Examples:
  markbridge compare report --list
  markbridge compare report run-20260327-160000-9f3c --format html --out report.html
  markbridge compare report ./runs/acme.json --format junit --out compare.xml
  markbridge compare report live:acme --config markbridge.yaml --out live.html
A run is the id that compare run printed, the path of its file, latest, or live:<partner> for what live comparison has found. Counts from 1 to 4 are printed as <5, and others as >= a bound
where they would give such a count away; --exact prints all of them, for those who may see figures about single learners.
Exit status: 0 the report was written, whatever it says; 2 for wrong usage or a file that cannot be read.`

/** Adds `compare report`. */
export function addCompareReport(compare: Command, exitWith: (status: number) => void): void {
  compare
    .command('report')
    .description('write what a run found as a page, as JSON, CSV or JUnit XML')
    .argument('[run]', 'id of a run, latest, the path of its file, or live:<partner>')
    .addOption(
      new Option('--format <format>', 'form of the report')
        .choices(['html', 'json', 'csv', 'junit'])
        .default('html'),
    )
    .option('--exact', 'print counts from 1 to 4 as they are')
    .option('--out <file>', 'write to this file (default: standard output)')
    .option('--dir <folder>', 'folder of the runs', './data/compare')
    .option('--config <file>', 'configuration with the journal of a live:<partner>')
    .option('--journal <url>', 'journal of a live:<partner> (default: of the configuration)')
    .option('--list', 'list the runs of the folder, newest first')
    .addHelpText('after', examples)
    .action(async (run: string | undefined, options: CompareReportOptions) => {
      const { runCompareReport } = await import('../run-compare-report.ts')
      exitWith(await runCompareReport(run, options))
    })
}
