import { type JournalConfig, journalKeysOf, journalUrlOf } from '../config/index.ts'
import { createNoJournal, type Journal, openJournal } from '../journal/index.ts'
import type { Events } from '../observability/events.ts'

/** Opens the journal that the configuration names. Errors: those of `openJournal`. */
export function openConfiguredJournal(config: JournalConfig, events: Events): Promise<Journal> {
  const url = journalUrlOf(config)
  if (url === 'none') return Promise.resolve(createNoJournal())
  const { replayForMs, keepPayloadsMs, keepRecordsMs, leaseMs } = config
  return openJournal({
    url,
    keys: journalKeysOf(config),
    replayForMs,
    keepPayloadsMs,
    keepRecordsMs,
    leaseMs,
    events: {
      failed: (reason) => events.journalFailed({ reason }),
      recovered: () => events.journalRecovered(),
      leaseLost: () => events.journalLeaseLost(),
    },
  })
}
