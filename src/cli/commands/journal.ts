import { chmodSync, chownSync, statSync, type Stats } from 'node:fs'
import { dirname } from 'node:path'

import { type Command, InvalidArgumentError, Option } from 'commander'

import { markFileOf, stageFileOf } from '../../app/stages.ts'
import { type Config, type JournalConfig, journalKeysOf, journalUrlOf } from '../../config/index.ts'
import { AdapterError } from '../../errors.ts'
import {
  adoptJournal,
  examineJournal,
  type JournalInspector,
  openInspector,
  type RecordState,
} from '../../journal/index.ts'
import {
  type AdoptedStages,
  formatAdopted,
  formatBalances,
  formatBatch,
  formatBatches,
  formatCondition,
  formatDeadLetters,
  formatErased,
} from '../journal-text.ts'
import { readLearner, searchOf } from '../learner-id.ts'
import { adoptStages } from '../rollout/show.ts'
import { readCount, type Target, withTarget } from '../options.ts'
import { loadTarget } from '../target.ts'
import { print } from '../text.ts'

const examples = `
Examples:
  markbridge journal ls --state unknown --since 2026-09-01
  markbridge journal ls --dead-letters
  markbridge journal show 42
  markbridge journal reconcile
  markbridge journal check
  markbridge journal purge --config markbridge.yaml
  markbridge journal purge --config markbridge.yaml --learner - < id.txt
  markbridge journal adopt --config markbridge.yaml

Every subcommand except adopt works while a server runs. No content of a request is shown, so no key is needed; only
purge --learner reads requests, with the keys of the configuration.`

const states = ['open', 'confirmed', 'refused', 'unknown', 'parked']

/** Adds `journal ls`, `show`, `reconcile`, `dismiss`, `check`, `purge` and `adopt`. */
export function addJournal(journal: Command, exitWith: (status: number) => void): void {
  journal.addHelpText('after', examples)
  const target = (command: Command): Command =>
    withTarget(command, 'configuration file that names the journal')
  target(journal.command('ls'))
    .description(
      'list batches, newest first, and the balance of each partner; exit status 1 for a balance that does not add up',
    )
    .option('--partner <id>', 'only batches of this partner')
    .addOption(new Option('--state <state>', 'only batches with a record in this state').choices(states))
    .option('--since <time>', 'only batches received at or after this time (ISO 8601)', readTime)
    .option('--before <batch>', 'only batches with a lower number', readCount)
    .option('--limit <n>', 'maximum number of batches', readCount, 50)
    .option('--dead-letters', 'list the dead letters instead, each with its cause and remedy')
    .action(async (options: ListOptions) => exitWith(await listBatches(options)))
  target(journal.command('show').argument('<batch>', 'batch number', readCount))
    .description('show the state of each record of a batch')
    .action(showBatch)
  target(journal.command('reconcile').argument('[batch]', 'only this batch', readCount))
    .description('retry waiting records now; a running server picks them up within seconds')
    .action(reconcileBatches)
  target(
    journal
      .command('dismiss')
      .argument('<batch>', 'batch number', readCount)
      .argument('[parts...]', 'only these parts', readCounts),
  )
    .description('remove handled dead letters from the list; parts are numbered from 1')
    .action(dismissRecords)
  target(journal.command('check'))
    .description(
      'check the whole file of an SQLite journal, and the balance of each partner; exit status 1 if something is wrong',
    )
    .action(async (options: Target) => exitWith(await checkJournal(options)))
  target(journal.command('adopt'))
    .description(
      'accept a journal that was damaged, lost or replaced by an old copy; without --yes only prints the consequences',
    )
    .option('--yes', 'accept it')
    .action(async (options: AdoptOptions) => exitWith(await acceptJournal(options)))
  target(journal.command('purge'))
    .description('delete data past its retention period (the server does this hourly)')
    .option(
      '--learner <id>',
      'erase what is kept of one learner instead (guid; - reads it from standard input); exit status 1 if something is left',
    )
    .action(async (options: PurgeOptions) => exitWith(await purgeJournal(options)))
}

function readCounts(text: string, before: readonly number[] | undefined): readonly number[] {
  return [...(before ?? []), readCount(text)]
}

function readTime(text: string): number {
  const ms = Date.parse(text)
  if (Number.isNaN(ms)) throw new InvalidArgumentError('A date or a time of ISO 8601 is expected.')
  return ms
}

/** The flags of `journal ls`. */
interface ListOptions extends Target {
  readonly partner?: string
  readonly state?: RecordState
  readonly since?: number
  readonly before?: number
  readonly limit: number
  readonly deadLetters?: boolean
}

/** The flags of `journal adopt`. */
interface AdoptOptions extends Target {
  readonly yes?: boolean
}

/** The flags of `journal purge`. */
interface PurgeOptions extends Target {
  readonly learner?: string
}

/** Lists batches with the balance of each partner, or dead letters; returns 1 for a balance that does not add up. */
async function listBatches(options: ListOptions): Promise<number> {
  const { partner, state, since: sinceMs, before, limit } = options
  return withInspector(options, async (inspector) => {
    if (options.deadLetters === true) {
      const deadLetters = await inspector.deadLetters({ partner, limit })
      print(options, { deadLetters }, () => formatDeadLetters(deadLetters))
      return 0
    }
    const batches = await inspector.batches({ partner, state, sinceMs, before, limit })
    const balances = await inspector.balances()
    print(options, { batches, balances }, () => `${formatBatches(batches)}\n\n${formatBalances(balances)}`)
    return balances.every(({ holds }) => holds) ? 0 : 1
  })
}

/** Shows the state of each record of a batch. */
async function showBatch(batch: number, options: Target): Promise<void> {
  await withInspector(options, async (inspector) => {
    const report = await inspector.batch(batch)
    if (report === undefined) throw new AdapterError('ADP_NOT_FOUND', `The journal has no batch ${batch}.`)
    print(options, report, () => formatBatch(report))
  })
}

/** Makes waiting records due now, of one batch or of all. */
async function reconcileBatches(batch: number | undefined, options: Target): Promise<void> {
  await withInspector(options, async (inspector) => {
    const due = await inspector.makeDue(Date.now(), batch)
    const records = due.reduce((total, { positions }) => total + positions.length, 0)
    print(options, { due }, () => `${records} record(s) of ${due.length} batch(es) are due now.`)
  })
}

/** Removes dead letters from the list; `parts` count from 1, none means all of the batch. */
async function dismissRecords(
  batch: number,
  parts: readonly number[] | undefined,
  options: Target,
): Promise<void> {
  await withInspector(options, async (inspector) => {
    const positions = parts?.length === 0 ? undefined : parts?.map((part) => part - 1)
    const dismissed = await inspector.dismiss(batch, positions)
    print(options, { dismissed }, () => `${dismissed} dead letter(s) dismissed.`)
  })
}

/** Checks the file and the balances of a journal; returns 1 where something is wrong. */
async function checkJournal(options: Target): Promise<number> {
  return withInspector(options, async (inspector) => {
    const damage = (await inspector.checkIntegrity()) ?? null
    const balances = await inspector.balances()
    print(
      options,
      { damage, balances },
      () => `${damage ?? 'No damage was found.'}\n\n${formatBalances(balances)}`,
    )
    return damage === null && balances.every(({ holds }) => holds) ? 0 : 1
  })
}

/** Accepts a damaged journal, or without `--yes` prints the consequences and returns 1. */
async function acceptJournal(options: AdoptOptions): Promise<number> {
  const config = await loadTarget(options)
  const { journal } = config
  const target = { url: urlOf(config), markFile: markFileOf(journal) }
  const condition = await examineJournal(target)
  if (options.yes !== true) {
    print(options, { condition, adopted: null }, () => formatCondition(condition, journal.replayForMs))
    return 1
  }
  const files = [...filesOf(target.url), target.markFile, stageFileOf(journal)]
  const { result, foreign } = await keepOwners(
    files.filter((path) => path !== undefined),
    async () => ({
      adopted: await adoptJournal(target, condition, journal.replayForMs, Date.now()),
      stages: await tryAdoptStages(config),
    }),
  )
  const { adopted, stages } = result
  print(options, { condition, adopted, stages, foreign }, () => formatAdopted(adopted, stages, foreign))
  return stages.failure === null ? 0 : 1
}

/** The journal is accepted already: what is wrong with its stages is said, and stops nothing. */
async function tryAdoptStages(config: Config): Promise<AdoptedStages> {
  try {
    return { lowered: await adoptStages(config), failure: null }
  } catch (error) {
    return { lowered: [], failure: error instanceof AdapterError ? error.message : 'unexpected error.' }
  }
}

/** The files of an SQLite journal. */
function filesOf(url: string): readonly string[] {
  const path = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]
  return path === undefined ? [] : ['', '.mark', '-wal', '-shm'].map((ending) => path + ending)
}

/** Deletes data past its retention period, or what is kept of one learner; returns 1 where something of the learner is left. */
async function purgeJournal(options: PurgeOptions): Promise<number> {
  const { learner } = options
  if (learner !== undefined) return eraseLearner(await readLearner(learner), options)
  return withInspector(options, async (inspector, journal) => {
    const purged = await inspector.purge(journal, Date.now())
    print(
      options,
      purged,
      () => `Deleted the payloads of ${purged.payloads} batch(es), and ${purged.batches} whole batch(es).`,
    )
    return 0
  })
}

function eraseLearner(learner: string, options: PurgeOptions): Promise<number> {
  return withInspector(options, async (inspector, journal) => {
    const how = { keys: journalKeysOf(journal), plaintextAccepted: true }
    const erased = await inspector.erase(how, searchOf(learner))
    print(options, erased, () => formatErased(erased))
    return erased.unsettled.length === 0 && erased.unreadable.length === 0 && erased.rewritten ? 0 : 1
  })
}

/** The address of the journal that the flags name. Error: `ADP_USAGE` where there is none. */
function urlOf({ journal }: Config): string {
  const url = journalUrlOf(journal)
  if (url !== 'none') return url
  throw new AdapterError('ADP_USAGE', 'The configured journal is none, so there is no journal to inspect.')
}

async function withInspector<Result>(
  target: Target,
  work: (inspector: JournalInspector, journal: JournalConfig) => Promise<Result>,
): Promise<Result> {
  const config = await loadTarget(target)
  const { journal } = config
  const inspector = await openInspector(urlOf(config), markFileOf(journal))
  try {
    return await work(inspector, journal)
  } finally {
    await inspector.close()
  }
}

/**
 * Runs work that replaces files, and gives them back to their owners with their modes: an operator runs it as root, and the adapter has to
 * read and write them after that. A file that is new belongs to the owner of the first one that was there, or else of the folder. `foreign`:
 * files that this user may not give back.
 */
async function keepOwners<Result>(
  paths: readonly string[],
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly foreign: readonly string[] }> {
  const before = new Map(paths.map((path) => [path, statOf(path)]))
  const other = [...before.values()].find((stat) => stat !== undefined)
  const folder = paths[0] === undefined ? undefined : statOf(dirname(paths[0]))
  const result = await work()
  const foreign = paths.filter((path) => {
    const owner = before.get(path) ?? other ?? folder
    const now = statOf(path)
    if (owner === undefined || now === undefined) return false
    try {
      if (owner.isFile()) chmodSync(path, owner.mode & 0o777)
      if (now.uid !== owner.uid || now.gid !== owner.gid) chownSync(path, owner.uid, owner.gid)
      return false
    } catch {
      return true
    }
  })
  return { result, foreign }
}

const statOf = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false })
