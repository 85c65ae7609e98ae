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
    '- Open and waiting records of the lost part stay unfinished unless their client sends them again.',
    '',
    'Nothing has been changed yet. Restoring the journal and the files beside it from a backup loses nothing. To accept the loss, stop',
    'every process that uses the journal and run this command with --yes.',
  ].join('\n')
}

/** Describes what adopting the journal has done. */
export function formatAdopted({ readBackUntilMs, setAside }: Adopted): string {
  return [
    ...setAside.map((name) => `Kept as ${name}`),
    `The journal is accepted. Until ${time(readBackUntilMs)} new records are read from V3 before they are posted.`,
  ].join('\n')
}
