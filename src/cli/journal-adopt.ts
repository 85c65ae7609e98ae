import type { Adopted, JournalCondition } from '../journal/index.ts'

const time = (ms: number): string => new Date(ms).toISOString()

/** What is wrong with a journal, what accepting it means, and how. */
export function formatCondition(condition: JournalCondition, replayForMs: number): string {
  const { place, damage, usable, batches, openRecords, damagedBatches } = condition
  const hours = Math.ceil(replayForMs / 360_000) / 10
  return [
    `journal ${place}: ${damage ?? 'nothing contradicts that this is the journal that was used last'}.`,
    usable
      ? `It holds ${batches} batch(es) with ${openRecords} open record(s), which are kept.`
      : 'Nothing of it can be used: a new journal is begun, and its files, if there are any, are kept under another name.',
    ...(damagedBatches === 0
      ? []
      : [
          `Of these, ${damagedBatches} batch(es) have rows that are not as they were written: nothing of them is answered or sent.`,
        ]),
    '',
    'Accepting the loss means:',
    '- A batch that the journal does not know any longer is not answered from it when its client sends it again.',
    `- For ${hours} h (journal.replayForMs) every new record is looked for in V3 before it is posted, which takes a read each. A mark`,
    '  that stands there with the same content counts as confirmed; one that was applied and has been overwritten since is posted again.',
    '- What was open or waiting in the lost part is finished by nobody, unless its client sends it again.',
    '',
    'Restoring the journal with the files beside it loses nothing. Otherwise stop every process that uses the journal and run this',
    'command again with --yes. Nothing has been changed yet.',
  ].join('\n')
}

/** What was done. */
export function formatAdopted({ readBackUntilMs, setAside }: Adopted): string {
  return [
    ...setAside.map((name) => `Kept as ${name}`),
    `The journal is accepted as it is. Until ${time(readBackUntilMs)} new records are looked for in V3 before they are posted.`,
  ].join('\n')
}
