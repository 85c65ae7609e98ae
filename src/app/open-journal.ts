import { acceptsPlaintext, type Config, journalKeysOf, journalUrlOf } from '../config/index.ts'
import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import { createLateJournal, createNoJournal, type Journal, openJournal } from '../journal/index.ts'
import type { Events } from '../observability/events.ts'
import type { LateRolloutStore } from './create-stages.ts'
import type { RateSharing } from './share-rate.ts'
import { markFileOf } from './stage-file.ts'

/** Opens the journal that the configuration names, and shares with those who share it the pace and the stages. Errors: those of `openJournal`. */
export async function openConfiguredJournal(
  { journal: config, tuning }: Pick<Config, 'journal' | 'tuning'>,
  events: Events,
  sharing: RateSharing,
  rollout: Pick<LateRolloutStore, 'use'>,
): Promise<Journal> {
  const url = journalUrlOf(config)
  if (url === 'none') return createNoJournal()
  const { replayForMs, keepRecordsMs } = config
  const journal = await openJournal({
    url,
    keys: journalKeysOf(config),
    replayForMs,
    keepRecordsMs,
    leaseMs: tuning.leaseMs,
    markFile: markFileOf(config),
    plaintext: acceptsPlaintext(config) ? 'accept' : 'refuse',
    events: {
      failed: (reason) => events.journalFailed({ reason }),
      recovered: () => events.journalRecovered(),
      leaseLost: () => events.journalLeaseLost(),
      rowsDamaged: (batches) => events.journalRowsDamaged({ batches }),
    },
  })
  sharing.use(journal.rateLimit)
  rollout.use(journal)
  return journal
}

/**
 * Opens a journal for an adapter that also serves from V2, which needs none: where its store cannot be reached now, it is opened as soon
 * as it can be. Errors: those of `open`, except `ADP_JOURNAL_UNAVAILABLE`.
 */
export async function openJournalLater(
  open: () => Promise<Journal>,
  events: Pick<Events, 'journalFailed' | 'journalRecovered'>,
  clock: Clock,
): Promise<Journal> {
  try {
    return await open()
  } catch (cause) {
    if (!(cause instanceof AdapterError) || cause.code !== 'ADP_JOURNAL_UNAVAILABLE') throw cause
    let shown = cause.message
    events.journalFailed({ reason: shown })
    return createLateJournal({
      open,
      clock,
      onFailed: (failure) => {
        const reason = failure instanceof AdapterError ? failure.message : 'unexpected error'
        if (reason !== shown) events.journalFailed({ reason })
        shown = reason
      },
      onOpened: () => events.journalRecovered(),
    })
  }
}
