import type { Command } from 'commander'

import type { CompareLearnOptions } from '../run-compare-learn.ts'

const examples = `
Proposes layout, quirks and Type strings from what V2 really answered: a patch of the configuration, each line with the counts behind it, and
V2's error messages. Nothing is proposed without evidence, or where it is contradictory. Generic OData clients (Microsoft.OData.Client,
SAP Cloud SDK, UI5 V4, Olingo: they name an OData version or accept multipart/mixed) need layout: auto or nested; where they were answered flat, a note says so.

Examples:
  markbridge compare learn acme --config markbridge.yaml
  markbridge compare learn acme --config markbridge.yaml --recording ./recordings --key env:RECORDING_KEY

A running adapter counts at stage shadow, and keeps no value of a record. Exit status: 0; 3 nothing was observed; 2 wrong usage or
configuration.`

/** Adds `compare learn`. */
export function addCompareLearn(compare: Command, exitWith: (status: number) => void): void {
  compare
    .command('learn <partner>')
    .description("propose settings of a partner from V2's replies")
    .option('--config <file>', 'configuration file (default: one partner, default)')
    .option('--journal <url>', 'journal with the counts (default: of the configuration)')
    .option('--recording <dir>', 'read recordings in place of the counts')
    .option('--key <source>', 'open encrypted recordings with the key of env:NAME or file:path')
    .option('--json', 'print one JSON document')
    .addHelpText('after', examples)
    .action(async (partner: string, options: CompareLearnOptions) => {
      const { runCompareLearn } = await import('../run-compare-learn.ts')
      exitWith(await runCompareLearn(partner, options))
    })
}
