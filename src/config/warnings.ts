import { journalUrlOf } from './journal-schema.ts'
import type { Config, PartnerConfig } from './schema.ts'

/** Warnings about valid but risky settings: one line each, with the consequence and the remedy. `workers` share the port. */
export function warningsOf(config: Config, workers: number): readonly string[] {
  const { journal, partners } = config
  const url = journalUrlOf(journal)
  const isShared = url !== 'none' && (workers > 1 || !url.startsWith('sqlite:'))
  if (!isShared || journal.keys.length > 0 || !partners.some(needsItsClient)) return []
  const sharers = workers > 1 ? `${workers} workers share the journal` : 'instances can share the journal'
  return [
    `${sharers} and journal.keys is empty: without a key the journal stores no credentials, so a write that a crash interrupted waits ` +
      'until its client repeats the batch or the token, and becomes a dead letter after a day. Add a key to journal.keys.',
  ]
}

/** True where writes are finished with the credentials of a client: the partner has no token or key of its own. */
function needsItsClient({ v3 }: PartnerConfig): boolean {
  return v3.auth.mode !== 'clientCredentials' || v3.subscriptionKey === undefined
}
