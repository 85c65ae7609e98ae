import {
  type Adopted,
  type BatchReport,
  type BatchSummary,
  type CheckedBalance,
  type Erased,
  type JournalCondition,
  type RecordSummary,
  recordStates,
} from '../journal/index.ts'
import { formatTable, formatTime } from './text.ts'

/** Batches as a table, one line each. */
export function formatBatches(batches: readonly BatchSummary[]): string {
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

/** The balance of each partner, and whether it adds up. */
export function formatBalances(balances: readonly CheckedBalance[]): string {
  return formatTable(balances, [
    ['partner', ({ partner }) => partner],
    ['received', ({ received }) => received],
    ...recordStates.map((state) => [state, (one: CheckedBalance) => one[state]] as const),
    ['holds', ({ holds }) => (holds ? 'yes' : 'NO: the journal is damaged')],
  ])
}

/** One batch with a line for each record, and one for each dead letter. */
export function formatBatch(batch: BatchReport): string {
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

/** What was erased of a learner, and what has to be done about the rest. */
export function formatErased({ erased, unsettled, unreadable, rewritten }: Erased): string {
  const lines = [`Erased the requests and answers of ${erased.length} batch(es).`]
  if (unsettled.length > 0)
    lines.push(
      `${unsettled.length} batch(es) are not settled and were left as they are: ${unsettled.join(', ')}. ` +
        'markbridge journal show <batch> lists what they wait for; run this again when they are settled.',
    )
  if (unreadable.length > 0)
    lines.push(
      `${unreadable.length} batch(es) cannot be read, so they were left: ${unreadable.join(', ')}. ` +
        'Check the keys of the journal (journal.keys); the retention periods delete them otherwise.',
    )
  if (!rewritten)
    lines.push(
      'The database could not be rewritten, so its files may hold remains of what was deleted. Run this again when there is less load.',
    )
  return lines.join('\n')
}

/** Dead letters, each with its remedy on a line of its own. */
export function formatDeadLetters(letters: readonly RecordSummary[]): string {
  if (letters.length === 0) return 'No dead letters.'
  return letters
    .map((one) => {
      const place = `batch ${one.batch} part ${one.position + 1} of ${one.partner}`
      return `${place}, received ${formatTime(one.receivedMs)}: ${one.state}, ${formatReason(one.reason)}\n  ${one.remedy ?? ''}`
    })
    .join('\n')
}

/** A reason may be a code of the service: control characters are replaced, since a terminal would act on them. */
function formatReason(reason: string | undefined): string {
  return (reason ?? '').replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 60)
}

/** Describes the damage of a journal, the consequences of accepting it, and how to accept it. */
export function formatCondition(condition: JournalCondition, replayForMs: number): string {
  const { place, damage, usable, batches, openRecords } = condition
  const hours = Math.ceil(replayForMs / 360_000) / 10
  return [
    `journal ${place}: ${damage ?? 'no damage was found'}.`,
    usable
      ? `It holds ${batches} batch(es) with ${openRecords} open record(s), which are kept.`
      : 'It cannot be used: a new journal is created, and existing files are kept under another name.',
    '',
    'Consequences of accepting the loss:',
    '- A repeated batch that the journal has lost is treated as a new batch.',
    `- For ${hours} h (journal.replayForMs) every new record is read from V3 before it is posted, at one read each. An equal mark in`,
    '  V3 confirms the record; a record that was applied and has since been overwritten is posted again.',
    usable
      ? '- Stages of partners and their audit trail are those of this copy: what was changed since is lost.'
      : '- Stages of partners and their audit trail are lost: each partner begins at the stage of the configuration file.',
    '- A partner that the state file (journal.stages in journal.stateDir, or <file>.stages) has at a lower stage is taken back to it. Compare markbridge',
    '  rollout ls with what you expect before you start the adapter.',
    '- Open and waiting records of the lost part stay unfinished unless their client sends them again.',
    '',
    'Nothing has been changed yet. Restoring the journal and the files beside it from a backup loses nothing. To accept the loss, stop',
    'every process that uses the journal and run this command with --yes, on each machine that has a mark or a state file.',
  ].join('\n')
}

/** What became of the stages of an accepted journal. */
export interface AdoptedStages {
  /** Partners that were taken back to the stage of the state file. */
  readonly lowered: readonly string[]
  /** Why that could not be done; null: it was. */
  readonly failure: string | null
}

/** Describes what adopting the journal has done. */
export function formatAdopted(
  { readBackUntilMs, setAside }: Adopted,
  { lowered, failure }: AdoptedStages,
  foreign: readonly string[],
): string {
  return [
    ...setAside.map((name) => `Kept as ${name}`),
    `The journal is accepted. Until ${formatTime(readBackUntilMs)} new records are read from V3 before they are posted.`,
    ...lowered.map((partner) => `${partner} was taken back to the stage of the state file.`),
    ...(failure === null
      ? []
      : [
          `Stages were not compared with the state file: ${failure} Compare markbridge rollout ls with what you expect.`,
        ]),
    ...foreign.map((path) => `${path} has another owner now: give it to the user of the adapter.`),
  ].join('\n')
}
