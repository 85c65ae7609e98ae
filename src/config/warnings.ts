import { journalUrlOf } from './journal-schema.ts'
import type { Config, PartnerConfig } from './schema.ts'

/** What is allowed and yet seldom meant: one line each, with what follows from it and what to do. `workers` share the port. */
export function warningsOf(config: Config, workers: number): readonly string[] {
  const { journal, partners } = config
  const url = journalUrlOf(journal)
  const isShared = url !== 'none' && (workers > 1 || !url.startsWith('sqlite:'))
  if (!isShared || journal.keys.length > 0 || !partners.some(needsItsClient)) return []
  const sharers = workers > 1 ? `${workers} workers share the journal` : 'instances can share the journal'
  return [
    `${sharers} and journal.keys is empty: without a key it keeps no credentials, so a write that a crash cut off waits for its ` +
      'client to send the same batch or the same token again, and is given up after a day. Add a key to journal.keys.',
  ]
}

/** True where writes are finished with what a client showed: the adapter has no token or key of its own for the partner. */
function needsItsClient({ v3 }: PartnerConfig): boolean {
  return v3.auth.mode !== 'clientCredentials' || v3.subscriptionKey === undefined
}
