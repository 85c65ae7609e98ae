import { onTestFinished } from 'vitest'

import type { AppOverrides } from '../../../src/index.ts'
import { type Journal, openJournal } from '../../../src/journal/index.ts'
import type { Answer } from '../../support/scripted-upstream.ts'
import { onePartner, startWithV3 } from '../../support/start-adapter.ts'
import { journalFile } from './journal-file.ts'

/** Starts the adapter with a V3 that gives this answer, on a journal in which `own` replaces some functions. */
export async function startOnJournal(
  answer: Answer | undefined,
  own: (journal: Journal) => Partial<Journal>,
  v3: object = {},
  overrides: AppOverrides = {},
) {
  const journal = await openJournal({ url: journalFile().url })
  onTestFinished(() => journal.close())
  const open = (): Promise<Journal> => Promise.resolve({ ...journal, ...own(journal) })
  return { journal, ...(await startWithV3(answer, onePartner({ v3 }), { openJournal: open, ...overrides })) }
}

/** Wraps `reopen` so that a resend and recovery reopen records of a batch at the same time, and recovery succeeds first. */
export function reopenTogether(journal: Journal): Journal['reopen'] {
  const client = Promise.withResolvers<undefined>()
  const background = Promise.withResolvers<undefined>()
  return async (number, positions, credentials) => {
    if (credentials === undefined) await client.promise
    else {
      client.resolve(undefined)
      await background.promise
    }
    return journal.reopen(number, positions, credentials).finally(() => background.resolve(undefined))
  }
}
