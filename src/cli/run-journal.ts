import { markFileOf, stageFileOf } from '../app/stage-file.ts'
import {
  type Config,
  type JournalConfig,
  journalKeysOf,
  journalUrlOf,
  loadConfig,
  parseConfig,
} from '../config/index.ts'
import { AdapterError } from '../errors.ts'
import {
  adoptJournal,
  examineJournal,
  type JournalInspector,
  openInspector,
  type RecordState,
} from '../journal/index.ts'
import { type AdoptedStages, formatAdopted, formatCondition } from './journal-adopt.ts'
import {
  formatBalances,
  formatBatch,
  formatBatches,
  formatDeadLetters,
  formatErased,
} from './journal-text.ts'
import { keepOwners } from './keep-owners.ts'
import { readLearner, searchOf } from './learner-id.ts'
import { adoptStages } from './rollout/adopt-stages.ts'

/** The flags that name a journal, and how a result is printed. */
export interface JournalTarget {
  readonly journal?: string
  readonly config?: string
  readonly json?: boolean
}

/** The flags of `journal ls`. */
export interface ListOptions extends JournalTarget {
  readonly partner?: string
  readonly state?: RecordState
  readonly since?: number
  readonly before?: number
  readonly limit: number
  readonly deadLetters?: boolean
}

/** The flags of `journal adopt`. */
export interface AdoptOptions extends JournalTarget {
  readonly yes?: boolean
}

/** The flags of `journal purge`. */
export interface PurgeOptions extends JournalTarget {
  readonly learner?: string
}

/** Lists batches with the balance of each partner, or dead letters; returns 1 for a balance that does not add up. */
export async function listBatches(options: ListOptions): Promise<number> {
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
export async function showBatch(batch: number, options: JournalTarget): Promise<void> {
  await withInspector(options, async (inspector) => {
    const report = await inspector.batch(batch)
    if (report === undefined) throw new AdapterError('ADP_NOT_FOUND', `The journal has no batch ${batch}.`)
    print(options, report, () => formatBatch(report))
  })
}

/** Makes waiting records due now, of one batch or of all. */
export async function reconcileBatches(batch: number | undefined, options: JournalTarget): Promise<void> {
  await withInspector(options, async (inspector) => {
    const due = await inspector.makeDue(Date.now(), batch)
    const records = due.reduce((total, { positions }) => total + positions.length, 0)
    print(options, { due }, () => `${records} record(s) of ${due.length} batch(es) are due now.`)
  })
}

/** Removes dead letters from the list; `parts` count from 1, none means all of the batch. */
export async function dismissRecords(
  batch: number,
  parts: readonly number[] | undefined,
  options: JournalTarget,
): Promise<void> {
  await withInspector(options, async (inspector) => {
    const positions = parts?.length === 0 ? undefined : parts?.map((part) => part - 1)
    const dismissed = await inspector.dismiss(batch, positions)
    print(options, { dismissed }, () => `${dismissed} dead letter(s) dismissed.`)
  })
}

/** Accepts a damaged journal, or without `--yes` prints the consequences and returns 1. */
export async function acceptJournal(options: AdoptOptions): Promise<number> {
  const { url, journal: config, all } = await resolveTarget(options)
  const target = { url, markFile: markFileOf(config) }
  const condition = await examineJournal(target)
  if (options.yes !== true) {
    print(options, { condition, adopted: null }, () => formatCondition(condition, config.replayForMs))
    return 1
  }
  const files = [...filesOf(url), target.markFile, stageFileOf(config)]
  const { result, foreign } = await keepOwners(
    files.filter((path) => path !== undefined),
    async () => ({
      adopted: await adoptJournal(target, condition, config.replayForMs, Date.now()),
      stages: await tryAdoptStages(all),
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
export async function purgeJournal(options: PurgeOptions): Promise<number> {
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

/** The address of the journal that the flags name, and its section of the configuration. */
async function resolveTarget({ config: path, journal: url }: JournalTarget): Promise<{
  readonly url: string
  readonly journal: JournalConfig
  readonly all: Config
}> {
  const all =
    path === undefined
      ? // Only the journal is used; the address of V3 is there because every configuration needs one.
        parseConfig({
          upstreams: { v3: { baseUrl: 'http://127.0.0.1' } },
          journal: url === undefined ? {} : { url },
        })
      : await loadConfig(path, { journal: url }, { secretsOf: ['journal', 'rollout'] })
  const { journal } = all
  const address = journalUrlOf(journal)
  if (address === 'none')
    throw new AdapterError('ADP_USAGE', 'The configured journal is none, so there is no journal to inspect.')
  return { url: address, journal, all }
}

async function withInspector<Result>(
  target: JournalTarget,
  work: (inspector: JournalInspector, journal: JournalConfig) => Promise<Result>,
): Promise<Result> {
  const { url, journal } = await resolveTarget(target)
  const inspector = await openInspector(url, markFileOf(journal))
  try {
    return await work(inspector, journal)
  } finally {
    await inspector.close()
  }
}

function print({ json }: JournalTarget, value: unknown, text: () => string): void {
  console.log(json === true ? JSON.stringify(value) : text())
}
