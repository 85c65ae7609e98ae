import type { Adopted, JournalCondition } from '../journal/index.ts'

const time = (ms: number): string => new Date(ms).toISOString()

/** Describes the damage of a journal, the consequences of accepting it, and how to accept it. */
export function formatCondition(condition: JournalCondition, replayForMs: number): string {
  const { place, damage, usable, batches, openRecords, damagedBatches } = condition
  const hours = Math.ceil(replayForMs / 360_000) / 10
  return [
    `journal ${place}: ${damage ?? 'no damage was found'}.`,
    usable
      ? `It holds ${batches} batch(es) with ${openRecords} open record(s), which are kept.`
      : 'It cannot be used: a new journal is created, and existing files are kept under another name.',
    ...(damagedBatches === 0
      ? []
      : [
          `${damagedBatches} of these batch(es) have damaged rows; their records are neither answered nor sent.`,
        ]),
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
    `The journal is accepted. Until ${time(readBackUntilMs)} new records are read from V3 before they are posted.`,
    ...lowered.map((partner) => `${partner} was taken back to the stage of the state file.`),
    ...(failure === null
      ? []
      : [
          `Stages were not compared with the state file: ${failure} Compare markbridge rollout ls with what you expect.`,
        ]),
    ...foreign.map((path) => `${path} has another owner now: give it to the user of the adapter.`),
  ].join('\n')
}
