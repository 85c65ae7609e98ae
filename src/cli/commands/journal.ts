import { type Command, InvalidArgumentError, Option } from 'commander'

import type { AdoptOptions, JournalTarget, ListOptions, PurgeOptions } from '../run-journal.ts'
import { readCount } from './read-option.ts'

const examples = `
Examples:
  markbridge journal ls --state unknown --since 2026-09-01
  markbridge journal ls --dead-letters
  markbridge journal show 42
  markbridge journal reconcile
  markbridge journal purge --config markbridge.yaml
  markbridge journal purge --config markbridge.yaml --learner - < id.txt
  markbridge journal adopt --config markbridge.yaml

Every subcommand except adopt works while a server runs. No content of a request is shown, so no key is needed; only
purge --learner reads requests, with the keys of the configuration.`

const states = ['open', 'confirmed', 'refused', 'unknown', 'parked']

/** Adds `journal ls`, `show`, `reconcile`, `dismiss`, `purge` and `adopt`. */
export function addJournal(program: Command, exitWith: (status: number) => void): void {
  const journal = program
    .command('journal')
    .description('inspect the write journal, retry its waiting records, and maintain it')
    .addHelpText('after', examples)
  const load = async () => import('../run-journal.ts')
  withTarget(journal.command('ls'))
    .description(
      'list batches, newest first, and the balance of each partner; exit status 1 for a balance that does not add up',
    )
    .option('--partner <id>', 'only batches of this partner')
    .addOption(new Option('--state <state>', 'only batches with a record in this state').choices(states))
    .option('--since <time>', 'only batches received at or after this time (ISO 8601)', readTime)
    .option('--before <batch>', 'only batches with a lower number', readCount)
    .option('--limit <n>', 'maximum number of batches', readCount, 50)
    .option('--dead-letters', 'list the dead letters instead, each with its cause and remedy')
    .action(async (options: ListOptions) => exitWith(await (await load()).listBatches(options)))
  withTarget(journal.command('show').argument('<batch>', 'batch number', readCount))
    .description('show the state of each record of a batch')
    .action(async (batch: number, options: JournalTarget) => (await load()).showBatch(batch, options))
  withTarget(journal.command('reconcile').argument('[batch]', 'only this batch', readCount))
    .description('retry waiting records now; a running server picks them up within seconds')
    .action(async (batch: number | undefined, options: JournalTarget) =>
      (await load()).reconcileBatches(batch, options),
    )
  withTarget(
    journal
      .command('dismiss')
      .argument('<batch>', 'batch number', readCount)
      .argument('[parts...]', 'only these parts', readCounts),
  )
    .description('remove handled dead letters from the list; parts are numbered from 1')
    .action(async (batch: number, parts: readonly number[] | undefined, options: JournalTarget) =>
      (await load()).dismissRecords(batch, parts, options),
    )
  withTarget(journal.command('adopt'))
    .description(
      'accept a journal that was damaged, lost or replaced by an old copy; without --yes only prints the consequences',
    )
    .option('--yes', 'accept it')
    .action(async (options: AdoptOptions) => exitWith(await (await load()).acceptJournal(options)))
  withTarget(journal.command('purge'))
    .description('delete data past its retention period (the server does this hourly)')
    .option(
      '--learner <id>',
      'erase what is kept of one learner instead (guid; - reads it from standard input); exit status 1 if something is left',
    )
    .action(async (options: PurgeOptions) => exitWith(await (await load()).purgeJournal(options)))
}

function withTarget(command: Command): Command {
  return command
    .option('--config <file>', 'configuration file that names the journal')
    .option('--journal <url>', 'sqlite:<file> (default sqlite:./data/journal.db) or postgres://…')
    .option('--json', 'print one JSON document')
}

function readCounts(text: string, before: readonly number[] | undefined): readonly number[] {
  return [...(before ?? []), readCount(text)]
}

function readTime(text: string): number {
  const ms = Date.parse(text)
  if (Number.isNaN(ms)) throw new InvalidArgumentError('A date or a time of ISO 8601 is expected.')
  return ms
}
