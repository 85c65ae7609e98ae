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
  recordStates,
  type RecordState,
  sqlitePathOf,
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
import { type Answer, answerWith } from '../text.ts'

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

/** Adds `journal ls`, `show`, `reconcile`, `dismiss`, `check`, `purge` and `adopt`. */
export function addJournal(journal: Command, exitWith: (status: number) => void): void {
  journal.addHelpText('after', examples)
  const target = (command: Command): Command =>
    withTarget(command, 'configuration file that names the journal')
  const answer = <Args extends readonly unknown[]>(work: (...args: Args) => Promise<Answer>) =>
    answerWith(exitWith, work)
  target(journal.command('ls'))
    .description(
      'list batches, newest first, and the balance of each partner; exit status 1 for a balance that does not add up',
    )
    .option('--partner <id>', 'only batches of this partner')
    .addOption(
      new Option('--state <state>', 'only batches with a record in this state').choices(recordStates),
    )
    .option('--since <time>', 'only batches received at or after this time (ISO 8601)', readTime)
    .option('--before <batch>', 'only batches with a lower number', readCount)
    .option('--limit <n>', 'maximum number of batches', readCount, 50)
    .option('--dead-letters', 'list the dead letters instead, each with its cause and remedy')
    .action(
      answer((options: ListOptions) =>
        withInspector(options, (inspector) => listBatches(inspector, options)),
      ),
    )
  target(journal.command('show').argument('<batch>', 'batch number', readCount))
    .description('show the state of each record of a batch')
    .action(
      answer((batch: number, options: Target) =>
        withInspector(options, (inspector) => showBatch(inspector, batch)),
      ),
    )
  target(journal.command('reconcile').argument('[batch]', 'only this batch', readCount))
    .description('retry waiting records now; a running server picks them up within seconds')
    .action(
      answer((batch: number | undefined, options: Target) =>
        withInspector(options, (inspector) => reconcileBatches(inspector, batch)),
      ),
    )
  target(
    journal
      .command('dismiss')
      .argument('<batch>', 'batch number', readCount)
      .argument('[parts...]', 'only these parts', readCounts),
  )
    .description('remove handled dead letters from the list; parts are numbered from 1')
    .action(
      answer((batch: number, parts: readonly number[] | undefined, options: Target) =>
        withInspector(options, (inspector) => dismissRecords(inspector, batch, parts)),
      ),
    )
  target(journal.command('check'))
    .description(
      'check the whole file of an SQLite journal, and the balance of each partner; exit status 1 if something is wrong',
    )
    .action(answer((options: Target) => withInspector(options, checkJournal)))
  target(journal.command('adopt'))
    .description(
      'accept a journal that was damaged, lost or replaced by an old copy; without --yes only prints the consequences',
    )
    .option('--yes', 'accept it')
    .action(answer(acceptJournal))
  target(journal.command('purge'))
    .description('delete data past its retention period (the server does this hourly)')
    .option(
      '--learner <id>',
      'erase what is kept of one learner instead (guid; - reads it from standard input); exit status 1 if something is left',
    )
    .action(answer(purgeJournal))
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

/** Lists batches with the balance of each partner, or dead letters; status 1 for a balance that does not add up. */
async function listBatches(inspector: JournalInspector, options: ListOptions): Promise<Answer> {
  const { partner, state, since: sinceMs, before, limit } = options
  if (options.deadLetters === true) {
    const deadLetters = await inspector.deadLetters({ partner, limit })
    return { document: { deadLetters }, text: () => formatDeadLetters(deadLetters) }
  }
  const batches = await inspector.batches({ partner, state, sinceMs, before, limit })
  const balances = await inspector.balances()
  return {
    document: { batches, balances },
    text: () => `${formatBatches(batches)}\n\n${formatBalances(balances)}`,
    status: balances.every(({ holds }) => holds) ? 0 : 1,
  }
}

/** Shows the state of each record of a batch. */
async function showBatch(inspector: JournalInspector, batch: number): Promise<Answer> {
  const report = await inspector.batch(batch)
  if (report === undefined) throw new AdapterError('ADP_NOT_FOUND', `The journal has no batch ${batch}.`)
  return { document: report, text: () => formatBatch(report) }
}

/** Makes waiting records due now, of one batch or of all. */
async function reconcileBatches(inspector: JournalInspector, batch: number | undefined): Promise<Answer> {
  const due = await inspector.makeDue(Date.now(), batch)
  const records = due.reduce((total, { positions }) => total + positions.length, 0)
  return { document: { due }, text: () => `${records} record(s) of ${due.length} batch(es) are due now.` }
}

/** Removes dead letters from the list; `parts` count from 1, none means all of the batch. */
async function dismissRecords(
  inspector: JournalInspector,
  batch: number,
  parts: readonly number[] | undefined,
): Promise<Answer> {
  const positions = parts?.length === 0 ? undefined : parts?.map((part) => part - 1)
  const dismissed = await inspector.dismiss(batch, positions)
  return { document: { dismissed }, text: () => `${dismissed} dead letter(s) dismissed.` }
}

/** Checks the file and the balances of a journal; status 1 where something is wrong. */
async function checkJournal(inspector: JournalInspector): Promise<Answer> {
  const damage = (await inspector.checkIntegrity()) ?? null
  const balances = await inspector.balances()
  return {
    document: { damage, balances },
    text: () => `${damage ?? 'No damage was found.'}\n\n${formatBalances(balances)}`,
    status: damage === null && balances.every(({ holds }) => holds) ? 0 : 1,
  }
}

/** Accepts a damaged journal; without `--yes` the consequences, and status 1. */
async function acceptJournal(options: AdoptOptions): Promise<Answer> {
  const config = await loadTarget(options)
  const { journal } = config
  const target = { url: urlOf(config), markFile: markFileOf(journal) }
  const condition = await examineJournal(target)
  if (options.yes !== true)
    return {
      document: { condition, adopted: null },
      text: () => formatCondition(condition, journal.replayForMs),
      status: 1,
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
  return {
    document: { condition, adopted, stages, foreign },
    text: () => formatAdopted(adopted, stages, foreign),
    status: stages.failure === null ? 0 : 1,
  }
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
  const path = sqlitePathOf(url)
  return path === undefined ? [] : ['', '.mark', '-wal', '-shm'].map((ending) => path + ending)
}

/** Deletes data past its retention period, or what is kept of one learner; status 1 where something of the learner is left. */
async function purgeJournal(options: PurgeOptions): Promise<Answer> {
  const learner = options.learner === undefined ? undefined : await readLearner(options.learner)
  return withInspector(options, async (inspector, journal) => {
    if (learner === undefined) {
      const purged = await inspector.purge(journal, Date.now())
      const { payloads, batches } = purged
      const text = `Deleted the payloads of ${payloads} batch(es), and ${batches} whole batch(es).`
      return { document: purged, text: () => text }
    }
    const how = { keys: journalKeysOf(journal), plaintextAccepted: true }
    const erased = await inspector.erase(how, searchOf(learner))
    const isAll = erased.unsettled.length === 0 && erased.unreadable.length === 0 && erased.rewritten
    return { document: erased, text: () => formatErased(erased), status: isAll ? 0 : 1 }
  })
}

/** The address of the journal that the flags name. Error: `ADP_USAGE` where there is none. */
function urlOf({ journal }: Config): string {
  const url = journalUrlOf(journal)
  if (url !== 'none') return url
  throw new AdapterError('ADP_USAGE', 'The configured journal is none, so there is no journal to inspect.')
}

async function withInspector(
  target: Target,
  work: (inspector: JournalInspector, journal: JournalConfig) => Promise<Answer>,
): Promise<Answer> {
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
