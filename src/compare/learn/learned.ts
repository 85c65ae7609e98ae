import * as z from 'zod'

import { AdapterError } from '../../errors.ts'

/** Names of counts, and in how many exchanges each was seen. */
export type Learned = ReadonlyMap<string, number>

/** Far more than a service has layouts, codes and texts. */
const MAX_NAMES = 300

/** The name of the counts of a partner in the store. */
export const learnedName = (partner: string): string => `learn ${partner}`

const schema = z.strictObject({
  schema: z.literal(1),
  counts: z.array(z.tuple([z.string(), z.int().nonnegative()])).max(MAX_NAMES),
})

/** Reads kept counts; undefined: none. Error: `ADP_JOURNAL_DAMAGED` for a text that holds none. */
export function parseLearned(text: string | undefined): Learned {
  if (text === undefined || text === '') return new Map()
  try {
    return new Map(schema.parse(JSON.parse(text)).counts)
  } catch (cause) {
    const message =
      'What was learned of the partner cannot be read: the journal is damaged, or a newer Markbridge wrote it.'
    throw new AdapterError('ADP_JOURNAL_DAMAGED', message, { cause })
  }
}

export function formatLearned(learned: Learned): string {
  return JSON.stringify({ schema: 1, counts: [...learned] })
}

/** Adds counts in place; a name that finds no room is left out. */
export function addLearned(target: Map<string, number>, added: Iterable<readonly [string, number]>): void {
  for (const [name, count] of added) {
    if (target.has(name) || target.size < MAX_NAMES) target.set(name, (target.get(name) ?? 0) + count)
  }
}
