import { chownSync, existsSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'

import { type Command, InvalidArgumentError, Option } from 'commander'

import { highWaterFileOf, stageFileOf } from '../../app/stages.ts'
import { type Config, type JournalConfig, journalKeysOf, journalUrlOf } from '../../config/index.ts'
import { eraseFromConsole } from '../../console/data/sweep.ts'
import { AdapterError } from '../../errors.ts'
import {
  type Adopted,
  adoptJournal,
  type BatchReport,
  type BatchSummary,
  type CheckedBalance,
  type Erased,
  examineJournal,
  type JournalCondition,
  type JournalInspector,
  openInspector,
  type RecordState,
  recordStates,
  type RecordSummary,
  sqlitePathOf,
} from '../../journal/index.ts'
import { readLearner, searchOf } from '../learner-id.ts'
import { readCount, readTime, type Target, withTarget } from '../options.ts'
import { type AdoptedStages, adoptStages } from '../rollout/show.ts'
import { loadTarget } from '../target.ts'
import { type Answer, answerWith, formatTable, formatTime } from '../text.ts'

const examples = `
Examples:
  markbridge journal ls --state unknown --since 2026-09-01
  markbridge journal ls --dead-letters
  markbridge journal show 42
  markbridge journal reconcile
  markbridge journal check
  markbridge journal purge --config markbridge.yaml
  markbridge journal purge --learner - < id.txt
  markbridge journal adopt

Every subcommand works while a server runs, except adopt --yes, for which the
server must be stopped. No content of a request is shown, so no key is needed.
Only purge --learner reads requests, with the keys of the configuration.`

export function addJournal(journal: Command, exitWith: (status: number) => void): void {
  journal.addHelpText('after', examples)
  const target = (command: Command): Command =>
    withTarget(command, 'configuration file that names the journal')
  const answer = <Args extends readonly unknown[]>(work: (...args: Args) => Promise<Answer>) =>
    answerWith(exitWith, async (...args: Args) => {
      const found = await work(...args)
      return { ...found, document: toPublic(found.document) }
    })
  const inspect = <Args extends readonly unknown[]>(
    work: (inspector: JournalInspector, ...args: Args) => Promise<Answer>,
  ) =>
    async function (this: Command, ...args: Args): Promise<void> {
      const found = () => withInspector(this.opts(), (inspector) => work(inspector, ...args))
      await answer(found).call(this)
    }
  target(journal.command('ls'))
    .description(
      'list batches, newest first, and the balance of each partner; exit status 1 for a balance that does not add up',
    )
    .option('--partner <id>', 'only batches of this partner')
    .addOption(
      new Option('--state <state>', 'only batches with a record in this state').choices(recordStates),
    )
    .option(
      '--since <time>',
      'only batches received since this time: ISO 8601, or an age such as 30m, 2h or 7d',
      readSince,
    )
    .option('--before <batch>', 'only batches with a lower number', readCount)
    .option('--limit <n>', 'maximum number of batches', readCount, 50)
    .option('--dead-letters', 'list the dead letters instead, each with its cause and remedy')
    .action(inspect(listBatches))
  target(journal.command('show').argument('<batch>', 'batch number', readCount))
    .description('show the state of each record of a batch')
    .action(inspect(showBatch))
  target(journal.command('reconcile').argument('[batch]', 'only this batch', readCount))
    .description('retry waiting records now; a running server picks them up within seconds')
    .action(inspect(reconcileBatches))
  target(
    journal
      .command('dismiss')
      .argument('<batch>', 'batch number', readCount)
      .argument('[parts...]', 'only these parts', readCounts),
  )
    .description('remove handled dead letters from the list; parts are numbered from 1')
    .action(inspect(dismissRecords))
  target(journal.command('check'))
    .description(
      'check the whole file of an SQLite journal, and the balance of each partner; exit status 1 if something is wrong',
    )
    .action(inspect(checkJournal))
  target(journal.command('adopt'))
    .description(
      'accept a journal that was damaged, lost or replaced by an old copy; without --yes only prints the consequences',
    )
    .option('--yes', 'accept the journal')
    .action(answer(acceptJournal))
  target(journal.command('purge'))
    .description('delete data past its retention period (the server does this hourly)')
    .option(
      '--learner <id>',
      'erase the stored data of one learner (a GUID; - reads the GUID from standard input); exit status 1 if data remains',
    )
    .action(answer(purgeJournal))
}

function readCounts(text: string, before: readonly number[] | undefined): readonly number[] {
  return [...(before ?? []), readCount(text)]
}

function readSince(text: string): number {
  if (/^\d+[a-z]+$/.test(text)) return Date.now() - readTime(text)
  const ms = Date.parse(text)
  if (Number.isNaN(ms))
    throw new InvalidArgumentError('The value must be a date or time in ISO 8601, or a duration such as 2h.')
  return ms
}

interface ListOptions extends Target {
  readonly partner?: string
  readonly state?: RecordState
  readonly since?: number
  readonly before?: number
  readonly limit: number
  readonly deadLetters?: boolean
}

interface AdoptOptions extends Target {
  readonly yes?: boolean
}

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

async function expectBatch(inspector: JournalInspector, batch: number): Promise<BatchReport> {
  const report = await inspector.batch(batch)
  if (report === undefined)
    throw new AdapterError(
      'ADP_NOT_FOUND',
      `The journal has no batch ${batch}. Nothing was changed. markbridge journal ls lists the batches.`,
    )
  return report
}

async function showBatch(inspector: JournalInspector, batch: number): Promise<Answer> {
  const report = await expectBatch(inspector, batch)
  return { document: report, text: () => formatBatch(report) }
}

async function reconcileBatches(inspector: JournalInspector, batch: number | undefined): Promise<Answer> {
  if (batch !== undefined) await expectBatch(inspector, batch)
  const due = await inspector.makeDue(Date.now(), batch)
  const records = due.reduce((total, { positions }) => total + positions.length, 0)
  return { document: { due }, text: () => `${records} record(s) of ${due.length} batch(es) are due now.` }
}

/** Removes dead letters of a batch from the list. `parts` count from 1. If no part is given, all are removed. */
async function dismissRecords(
  inspector: JournalInspector,
  batch: number,
  parts: readonly number[] | undefined,
): Promise<Answer> {
  await expectBatch(inspector, batch)
  const positions = parts?.length === 0 ? undefined : parts?.map((part) => part - 1)
  const dismissed = await inspector.dismiss(batch, positions)
  return { document: { dismissed }, text: () => `${dismissed} dead letter(s) dismissed.` }
}

async function checkJournal(inspector: JournalInspector): Promise<Answer> {
  const damage = (await inspector.checkIntegrity()) ?? null
  const balances = await inspector.balances()
  return {
    document: { damage, balances },
    text: () => `${damage ?? 'No damage was found.'}\n\n${formatBalances(balances)}`,
    status: damage === null && balances.every(({ holds }) => holds) ? 0 : 1,
  }
}

/** Accepts a damaged journal. Without `--yes`, only prints the consequences, with exit status 1. */
async function acceptJournal(options: AdoptOptions): Promise<Answer> {
  const config = await loadTarget(options)
  const { journal } = config
  const target = { url: urlOf(config), highWaterFile: highWaterFileOf(journal), keys: journalKeysOf(journal) }
  const condition = await examineJournal(target)
  if (options.yes !== true)
    return {
      document: { condition, adopted: null },
      text: () => formatCondition(condition, journal.replayForMs),
      status: 1,
    }
  const files = [...filesOf(target.url), target.highWaterFile, stageFileOf(journal)]
  const giveBack = keepOwner(files.filter((path) => path !== undefined))
  const adopted = await adoptJournal(target, condition, journal.replayForMs, Date.now())
  const stages = await tryAdoptStages(config)
  giveBack()
  return {
    document: { condition, adopted, stages },
    text: () => formatAdopted(adopted, stages),
    status: stages.failure === null ? 0 : 1,
  }
}

/** Adopts the stages. A failure is part of the result and does not end the command, because the journal is already accepted. */
async function tryAdoptStages(config: Config): Promise<TriedStages> {
  try {
    return { ...(await adoptStages(config)), failure: null }
  } catch (error) {
    const failure = error instanceof AdapterError ? error.message : 'unexpected error.'
    return { lowered: [], failure }
  }
}

function filesOf(url: string): readonly string[] {
  const path = sqlitePathOf(url)
  return path === undefined ? [] : ['', '.mark', '-wal', '-shm'].map((ending) => path + ending)
}

/** Deletes data past its retention period, or the data of one learner. The exit status is 1 if data of the learner remains. */
async function purgeJournal(options: Target & { readonly learner?: string }): Promise<Answer> {
  const learner = options.learner === undefined ? undefined : await readLearner(options.learner)
  return withInspector(options, async (inspector, journal) => {
    if (learner === undefined) {
      const purged = await inspector.purge(journal, Date.now())
      const { payloads, batches } = purged
      const text = `Deleted the payloads of ${payloads} batch(es), and ${batches} whole batch(es).`
      return { document: purged, text: () => text }
    }
    const how = { keys: journalKeysOf(journal), plaintextAccepted: true }
    const inJournal = await inspector.erase(how, searchOf(learner))
    const inConsole = await eraseFromConsole(urlOf({ journal }))
    const erased = { ...inJournal, rewritten: inJournal.rewritten && inConsole }
    const isAll = erased.unsettled.length === 0 && erased.unreadable.length === 0 && erased.rewritten
    return { document: erased, text: () => formatErased(erased), status: isAll ? 0 : 1 }
  })
}

function urlOf({ journal }: Pick<Config, 'journal'>): string {
  const url = journalUrlOf(journal)
  if (url !== 'none') return url
  throw new AdapterError(
    'ADP_USAGE',
    'journal.url is none, so there is no journal. Nothing was done. Name a journal with --journal.',
  )
}

async function withInspector(
  target: Target,
  work: (inspector: JournalInspector, journal: JournalConfig) => Promise<Answer>,
): Promise<Answer> {
  const config = await loadTarget(target)
  const { journal } = config
  const inspector = await openInspector(urlOf(config), highWaterFileOf(journal))
  try {
    return await work(inspector, journal)
  } finally {
    await inspector.close()
  }
}

/**
 * Returns a function that gives the files to the owner of the first existing file, or else of the folder. If an operator runs the command
 * as root, new files would otherwise belong to root, and the adapter could not open them.
 */
function keepOwner(paths: readonly string[]): () => void {
  const folders = paths.slice(0, 1).map((path) => dirname(path))
  const owner = [...paths, ...folders].map(statOf).find((stat) => stat !== undefined)
  return () => {
    if (owner === undefined || process.getuid?.() !== 0) return
    for (const path of paths) if (existsSync(path)) chownSync(path, owner.uid, owner.gid)
  }
}

const statOf = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false })

/** Converts a result to its public form: times are in ISO 8601, and parts count from 1. */
function toPublic(found: unknown): unknown {
  return JSON.parse(JSON.stringify(found), (name: string, value: unknown) => {
    if (name === 'retry' && typeof value === 'number') return formatTime(value)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    return Object.fromEntries(Object.entries(value).map(toPublicMember))
  })
}

function toPublicMember([name, value]: [string, unknown]): [string, unknown] {
  if (name === 'position') return ['part', Number(value) + 1]
  if (name === 'positions' && Array.isArray(value)) return ['parts', value.map((one) => Number(one) + 1)]
  return name.endsWith('Ms') ? [name.slice(0, -2), formatTime(Number(value))] : [name, value]
}

function formatBatches(batches: readonly BatchSummary[]): string {
  if (batches.length === 0) return 'No batches.'
  return formatTable(batches, [
    ['batch', ({ batch }) => batch],
    ['received', ({ receivedMs }) => formatTime(receivedMs)],
    ['partner', ({ partner }) => partner],
    ['records', ({ records }) => records],
    ...recordStates.map((state) => [state, (one: BatchSummary) => one.states[state]] as const),
    ['dead', ({ deadLetters }) => deadLetters],
    ['next due', ({ nextDueMs }) => formatTime(nextDueMs)],
  ])
}

function formatBalances(balances: readonly CheckedBalance[]): string {
  return formatTable(balances, [
    ['partner', ({ partner }) => partner],
    ['received', ({ received }) => received],
    ...recordStates.map((state) => [state, (one: CheckedBalance) => one[state]] as const),
    ['holds', ({ holds }) => (holds ? 'yes' : 'NO: the journal is damaged')],
  ])
}

function formatBatch(batch: BatchReport): string {
  const head = `batch ${batch.batch} of ${batch.partner}, received ${formatTime(batch.receivedMs)}, ${batch.records} record(s)`
  const table = formatTable(batch.parts, [
    ['part', ({ position }) => position + 1],
    ['state', ({ state, superseded }) => (superseded ? `${state} (superseded)` : state)],
    ['reason', ({ reason }) => formatReason(reason)],
    ['attempts', ({ attempts }) => attempts],
    ['settled', ({ settledMs }) => formatTime(settledMs)],
    ['retry', ({ retry }) => (retry === 'resend' ? 'with the same batch' : formatTime(retry))],
    ['dead', ({ deadLetter }) => (deadLetter ? 'yes' : '')],
  ])
  const remedies = batch.parts.flatMap(({ position, remedy }) =>
    remedy === undefined ? [] : [`part ${position + 1}: ${remedy}`],
  )
  return [head, '', table, ...(remedies.length === 0 ? [] : ['', ...remedies])].join('\n')
}

function formatErased({ erased, unsettled, unreadable, rewritten }: Erased): string {
  const lines = [`Erased the requests and replies of ${erased.length} batch(es).`]
  if (unsettled.length > 0)
    lines.push(
      `${unsettled.length} batch(es) are not settled, so they were not erased: ${unsettled.join(', ')}. ` +
        'markbridge journal show <batch> shows the reason for which a batch is not settled. Run the command again once the batches are settled.',
    )
  if (unreadable.length > 0)
    lines.push(
      `${unreadable.length} batch(es) cannot be read, so they were not erased: ${unreadable.join(', ')}. ` +
        'Check journal.keys and run the command again. Otherwise the batches are deleted after their retention period.',
    )
  if (!rewritten)
    lines.push(
      'The database could not be rewritten, so its files may still contain deleted data. Run the command again when the load is lower.',
    )
  return lines.join('\n')
}

function formatDeadLetters(letters: readonly RecordSummary[]): string {
  if (letters.length === 0) return 'No dead letters.'
  return letters
    .map((one) => {
      const place = `batch ${one.batch} part ${one.position + 1} of ${one.partner}`
      return `${place}, received ${formatTime(one.receivedMs)}: ${one.state}, ${formatReason(one.reason)}\n  ${one.remedy ?? ''}`
    })
    .join('\n')
}

/** Replaces control characters, which a terminal would interpret. A reason may be a code from the service. */
function formatReason(reason: string | undefined): string {
  return (reason ?? '').replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 60)
}

function formatCondition(condition: JournalCondition, replayForMs: number): string {
  const { place, damage, usable, batches, openRecords } = condition
  const hours = Math.ceil(replayForMs / 360_000) / 10
  return [
    `journal ${place}: ${damage ?? 'no damage was found'}.`,
    usable
      ? `The journal contains ${batches} batch(es) with ${openRecords} open record(s), which are kept.`
      : 'The journal cannot be used. A new journal is created, and existing files are kept under another name.',
    '',
    'Consequences of accepting the loss:',
    '- If a client resends a batch that the journal has lost, the adapter treats the batch as new.',
    `- For ${hours} h (journal.replayForMs) the adapter reads V3 once before it posts each new record. An equal mark in`,
    '  V3 confirms the record; a record that was applied and has since been overwritten is posted again.',
    usable
      ? '- Stages of partners and their audit trail have the state of this copy: later changes are lost.'
      : '- Stages of partners and their audit trail are lost: each partner begins at the stage of the configuration file.',
    '- A partner that the stage file (journal.stages in journal.stateDir, or <file>.stages) has at a lower stage is taken back to that stage.',
    '  Check the stages with markbridge rollout ls before you start the adapter.',
    '- Open and waiting records of the lost part stay unfinished unless their client sends them again.',
    '',
    'Nothing has been changed yet. If the newest file still exists with its -wal and .mark, put them back: then nothing is lost. A backup is',
    'older, and loses what was stored after it. To accept the loss, stop',
    'every process that uses the journal and run this command with --yes, on each machine that has a .mark or .stages file.',
  ].join('\n')
}

/** The result of adopting the stages. `failure` is the reason why they could not be adopted, or `null` if they were. */
type TriedStages = AdoptedStages & { readonly failure: string | null }

function formatAdopted({ readBackUntilMs, setAside }: Adopted, stages: TriedStages): string {
  const { lowered, failure } = stages
  return [
    ...setAside.map((name) => `Kept as ${name}`),
    `The journal is accepted. Until ${formatTime(readBackUntilMs)} the adapter reads V3 before it posts a new record.`,
    ...lowered.map((partner) => `${partner} was taken back to the stage of the stage file.`),
    ...(failure === null
      ? []
      : [
          `Stages were not compared with the stage file: ${failure} Check the stages with markbridge rollout ls.`,
        ]),
  ].join('\n')
}
