import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import type { Journal } from './journal.ts'

interface WaitEvents {
  journalFailed(failure: { readonly reason: string }): void
  journalRecovered(): void
}

const RETRY_MS = 1_000

/**
 * Opens a journal for an adapter whose partners V2 can serve without a journal. If the store is unavailable now, the journal is opened as
 * soon as the store becomes available. Until then every call throws `ADP_JOURNAL_UNAVAILABLE`, nothing is stored, and the instance holds no
 * lease. Throws the errors of `open` except `ADP_JOURNAL_UNAVAILABLE`.
 */
export async function openJournalLater(
  open: () => Promise<Journal>,
  events: WaitEvents,
  clock: Clock,
): Promise<Journal> {
  try {
    return await open()
  } catch (cause) {
    if (!(cause instanceof AdapterError) || cause.code !== 'ADP_JOURNAL_UNAVAILABLE') throw cause
    events.journalFailed({ reason: cause.message })
    return createLateJournal(open, cause.message, events, clock)
  }
}

/** Creates a journal that opens later. `shown` is the failure that was reported last. */
function createLateJournal(
  open: () => Promise<Journal>,
  shown: string,
  events: WaitEvents,
  clock: Clock,
): Journal {
  let journal: Journal | undefined
  let isClosed = false
  let cancel = (): void => undefined
  let opening: Promise<void>
  const tryToOpen = async (): Promise<void> => {
    try {
      const opened = await open()
      // Closes the store again, because `close` was called while the journal was being opened.
      if (isClosed) {
        await opened.close()
        return
      }
      journal = opened
      events.journalRecovered()
    } catch (cause) {
      const reason = cause instanceof AdapterError ? cause.message : 'unexpected error'
      if (reason !== shown) events.journalFailed({ reason })
      shown = reason
      if (isClosed) return
      cancel = clock.after(RETRY_MS, () => {
        opening = tryToOpen()
      })
    }
  }
  opening = tryToOpen()
  const get = (): Journal => {
    if (journal === undefined)
      throw new AdapterError(
        'ADP_JOURNAL_UNAVAILABLE',
        'The journal has not been reached since the adapter started. This copy of the request was not sent, but an earlier copy may have been applied. Send the same request again later, unchanged.',
      )
    return journal
  }
  /** Calls the journal. Rejects, and does not throw, if the journal is not open yet. */
  const ask = async <Result>(call: (opened: Journal) => Promise<Result>): Promise<Result> => call(get())
  return {
    durable: true,
    get linkSecret() {
      return get().linkSecret
    },
    get readBackUntilMs() {
      return get().readBackUntilMs
    },
    begin: (batch) => ask((opened) => opened.begin(batch)),
    answered: (batch) => journal?.answered(batch),
    settle: (batch, outcomes, lease) => ask((opened) => opened.settle(batch, outcomes, lease)),
    forget: (batch, open, lease) => ask((opened) => opened.forget(batch, open, lease)),
    reopen: (batch, positions, credentials, how) =>
      ask((opened) => opened.reopen(batch, positions, credentials, how)),
    load: (batch) => ask((opened) => opened.load(batch)),
    knownMarks: (record, sinceMs) => ask((opened) => opened.knownMarks(record, sinceMs)),
    olderOpen: (records) => ask((opened) => opened.olderOpen(records)),
    olderUnsettled: (records) => ask((opened) => opened.olderUnsettled(records)),
    stillOpen: (records) => ask((opened) => opened.stillOpen(records)),
    blocking: (batches) => ask((opened) => opened.blocking(batches)),
    takeOver: () => ask((opened) => opened.takeOver()),
    findAbandoned: (isAttended) => ask((opened) => opened.findAbandoned(isAttended)),
    askFor: (batch) => ask((opened) => opened.askFor(batch)),
    handOver: (batches) => ask((opened) => opened.handOver(batches)),
    due: (nowMs, limit) => ask((opened) => opened.due(nowMs, limit)),
    balances: () => ask((opened) => opened.balances()),
    unsettled: () => ask((opened) => opened.unsettled()),
    deadLetters: () => ask((opened) => opened.deadLetters()),
    readNote: (name) => ask((opened) => opened.readNote(name)),
    writeNote: (name, text) => ask((opened) => opened.writeNote(name, text)),
    lease: () => journal?.lease(),
    renewLease: () => journal?.renewLease() ?? Promise.resolve(undefined),
    isAvailable: () => journal?.isAvailable() ?? false,
    isDamaged: () => journal?.isDamaged() ?? false,
    close: async () => {
      isClosed = true
      cancel()
      await opening
      await journal?.close()
    },
  }
}
