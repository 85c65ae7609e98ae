import type { Clock } from '../clock.ts'
import { AdapterError } from '../errors.ts'
import type { Journal } from './journal.ts'

interface LateJournalOptions {
  /** Opens the journal; called until it succeeds. */
  readonly open: () => Promise<Journal>
  readonly clock: Clock
  /** Called with each error of `open`. */
  readonly onFailed: (cause: unknown) => void
  readonly onOpened: () => void
}

const RETRY_MS = 1_000

/**
 * Creates a journal that is opened as soon as its store can be reached: an adapter in front of V2 serves meanwhile what needs no journal.
 * Until then every call fails with `ADP_JOURNAL_UNAVAILABLE`, nothing was kept, and no lease is held.
 */
export function createLateJournal({ open, clock, onFailed, onOpened }: LateJournalOptions): Journal {
  let journal: Journal | undefined
  let isClosed = false
  let cancel = (): void => undefined
  let opening: Promise<void>
  const tryToOpen = async (): Promise<void> => {
    try {
      const opened = await open()
      // No caller waits for it any longer.
      if (isClosed) {
        await opened.close()
        return
      }
      journal = opened
      onOpened()
    } catch (cause) {
      onFailed(cause)
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
        'The journal has not been reached since the adapter started. Nothing was sent; try again later.',
      )
    return journal
  }
  /** Calls the journal; a call before it is open is a rejection as later failures are. */
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
    readNote: (name) => ask((opened) => opened.readNote(name)),
    writeNote: (name, text) => ask((opened) => opened.writeNote(name, text)),
    lease: () => journal?.lease(),
    renewLease: () => journal?.renewLease() ?? Promise.resolve(undefined),
    isAvailable: () => journal?.isAvailable() ?? false,
    close: async () => {
      isClosed = true
      cancel()
      await opening
      await journal?.close()
    },
  }
}
