import { type JournalConfig, journalKeysOf, journalUrlOf } from '../config/index.ts'
import { createNoJournal, type Journal, openJournal } from '../journal/index.ts'
import type { Events } from '../observability/events.ts'
import type { RateSharing } from './share-rate.ts'

/** Opens the journal that the configuration names, and shares the pace of those who share it. Errors: those of `openJournal`. */
export async function openConfiguredJournal(
  config: JournalConfig,
  events: Events,
  sharing: RateSharing,
): Promise<Journal> {
  const url = journalUrlOf(config)
  if (url === 'none') return createNoJournal()
  const { replayForMs, keepPayloadsMs, keepRecordsMs, leaseMs, markFile, plaintext } = config
  const journal = await openJournal({
    url,
    keys: journalKeysOf(config),
    replayForMs,
    keepPayloadsMs,
    keepRecordsMs,
    leaseMs,
    markFile,
    plaintext,
    events: {
      failed: (reason) => events.journalFailed({ reason }),
      recovered: () => events.journalRecovered(),
      leaseLost: () => events.journalLeaseLost(),
      rowsDamaged: (batches) => events.journalRowsDamaged({ batches }),
    },
  })
  sharing.use(journal.rateLimit)
  return journal
}
