import { type Command, InvalidArgumentError, Option } from 'commander'

import { type JournalConfig, journalUrlOf, loadConfig, parseConfig } from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import {
  adoptJournal,
  examineJournal,
  type JournalInspector,
  openInspector,
  type RecordState,
  type Retention,
} from '../journal/index.ts'
import { formatAdopted, formatCondition } from './journal-adopt.ts'
import { formatBalances, formatBatch, formatBatches, formatDeadLetters } from './journal-text.ts'
import { readCount } from './options.ts'

const examples = `
Examples:
  markbridge journal ls --state unknown --since 2026-09-01
  markbridge journal ls --dead-letters
  markbridge journal show 42
  markbridge journal reconcile
  markbridge journal purge --config markbridge.yaml
  markbridge journal adopt --config markbridge.yaml

All but adopt work while the adapter serves. Nothing of what a client sent is shown, so no key is needed.`

interface Target {
  readonly journal?: string
  readonly config?: string
  readonly json?: boolean
}

interface ListOptions extends Target {
  readonly partner?: string
  readonly state?: RecordState
  readonly since?: number
  readonly before?: number
  readonly limit: number
  readonly deadLetters?: boolean
}

/** Adds `journal ls`, `show`, `reconcile`, `dismiss`, `purge` and `adopt`. */
export function addJournal(program: Command, exitWith: (status: number) => void): void {
  const journal = program
    .command('journal')
    .description('look into the journal of writes, and bring forward what waits in it')
    .addHelpText('after', examples)
  const states = ['open', 'confirmed', 'refused', 'unknown', 'parked']
  withTarget(journal.command('ls'))
    .description(
      'list batches, newest first, and the totals of each partner; exit status 1 when they do not hold',
    )
    .option('--partner <id>', 'of this partner only')
    .addOption(new Option('--state <state>', 'with a record in this state').choices(states))
    .option('--since <time>', 'received at this time or later (ISO 8601)', readTime)
    .option('--before <batch>', 'with lower numbers than this one', readCount)
    .option('--limit <n>', 'so many at most', readCount, 50)
    .option(
      '--dead-letters',
      'list records that were given up after their client had been told 200, with what to do',
    )
    .action((options: ListOptions) =>
      withInspector(options, async (inspector) => {
        if (options.deadLetters === true) {
          const deadLetters = await inspector.deadLetters({ partner: options.partner, limit: options.limit })
          print(options, { deadLetters }, () => formatDeadLetters(deadLetters))
          return
        }
        const { partner, state, since: sinceMs, before, limit } = options
        const batches = await inspector.batches({ partner, state, sinceMs, before, limit })
        const balances = await inspector.balances()
        print(
          options,
          { batches, balances },
          () => `${formatBatches(batches)}\n\n${formatBalances(balances)}`,
        )
        if (balances.some(({ holds }) => !holds)) exitWith(1)
      }),
    )
  withTarget(journal.command('show').argument('<batch>', 'its number', readCount))
    .description('show what became of each record of a batch')
    .action((batch: number, options: Target) =>
      withInspector(options, async (inspector) => {
        const report = await inspector.batch(batch)
        if (report === undefined)
          throw new AdapterError('ADP_NOT_FOUND', `The journal has no batch ${batch}.`)
        print(options, report, () => formatBatch(report))
      }),
    )
  withTarget(journal.command('reconcile').argument('[batch]', 'of this batch only', readCount))
    .description(
      'make due now what waits for a later look: the adapter that serves takes it up within seconds',
    )
    .action((batch: number | undefined, options: Target) =>
      withInspector(options, async (inspector) => {
        const due = await inspector.makeDue(Date.now(), batch)
        const records = due.reduce((total, { positions }) => total + positions.length, 0)
        print(options, { due }, () => `${records} record(s) of ${due.length} batch(es) are due now.`)
      }),
    )
  withTarget(
    journal
      .command('dismiss')
      .argument('<batch>', 'its number', readCount)
      .argument('[parts...]', 'of these parts only', readCounts),
  )
    .description('take dead letters off the list, since somebody has dealt with them; parts count from 1')
    .action((batch: number, parts: readonly number[] | undefined, options: Target) =>
      withInspector(options, async (inspector) => {
        const positions = parts?.length === 0 ? undefined : parts?.map((part) => part - 1)
        const dismissed = await inspector.dismiss(batch, positions)
        print(options, { dismissed }, () => `${dismissed} dead letter(s) dismissed.`)
      }),
    )
  addAdopt(journal, exitWith)
  withTarget(journal.command('purge'))
    .description('forget what the time to keep it is over for, as the adapter does every hour')
    .action((options: Target) =>
      withInspector(options, async (inspector, retention) => {
        const purged = await inspector.purge(retention, Date.now())
        print(
          options,
          purged,
          () =>
            `Requests and answers of ${purged.payloads} batch(es) are forgotten, and ${purged.batches} batch(es) altogether.`,
        )
      }),
    )
}

function addAdopt(journal: Command, exitWith: (status: number) => void): void {
  withTarget(journal.command('adopt'))
    .description(
      'accept that the journal was damaged, lost or replaced by an old copy; prints what that means',
    )
    .option('--yes', 'accept it')
    .action(async (options: Target & { readonly yes?: boolean }) => {
      const { url, journal: config } = await resolveTarget(options)
      const target = { url, markFile: config.markFile }
      const condition = await examineJournal(target)
      if (options.yes !== true) {
        print(options, { condition, adopted: null }, () => formatCondition(condition, config.replayForMs))
        exitWith(1)
        return
      }
      const adopted = await adoptJournal(target, condition, config.replayForMs, Date.now())
      print(options, { condition, adopted }, () => formatAdopted(adopted))
    })
}

function withTarget(command: Command): Command {
  return command
    .option('--config <file>', 'configuration file that names the journal')
    .option('--journal <url>', 'sqlite:<file> (default sqlite:./data/journal.db) or postgres://…')
    .option('--json', 'print one JSON document')
}

/** The journal that is named, and the rest of its section. */
async function resolveTarget({ config: path, journal: url }: Target): Promise<{
  readonly url: string
  readonly journal: JournalConfig
}> {
  const { journal } =
    path === undefined
      ? // The journal is all that is asked for here; an address of V3 is needed in every configuration.
        parseConfig({
          upstreams: { v3: { baseUrl: 'http://127.0.0.1' } },
          journal: url === undefined ? {} : { url },
        })
      : await loadConfig(path, { journal: url })
  const address = journalUrlOf(journal)
  if (address === 'none')
    throw new AdapterError('ADP_USAGE', 'With journal: none there is nothing to look into.')
  return { url: address, journal }
}

async function withInspector(
  target: Target,
  work: (inspector: JournalInspector, retention: Retention) => Promise<void>,
): Promise<void> {
  const { url, journal } = await resolveTarget(target)
  const inspector = await openInspector(url, journal.markFile)
  try {
    await work(inspector, journal)
  } finally {
    await inspector.close()
  }
}

function print({ json }: Target, value: unknown, text: () => string): void {
  console.log(json === true ? JSON.stringify(value) : text())
}

function readCounts(text: string, before: readonly number[] | undefined): readonly number[] {
  return [...(before ?? []), readCount(text)]
}

function readTime(text: string): number {
  const ms = Date.parse(text)
  if (Number.isNaN(ms)) throw new InvalidArgumentError('A date or a time of ISO 8601 is expected.')
  return ms
}
