export type {
  Balance,
  Begun,
  DueRecords,
  Journal,
  NewBatch,
  NewRecord,
  RecordRef,
  RecordState,
  Reopened,
  Settled,
  StoredBatch,
  StoredRecord,
  TakenOver,
  Verdict,
} from './journal.ts'
export { createNoJournal } from './none.ts'
export { type JournalOptions, openJournal } from './open-journal.ts'
export type { JournalEvents } from './sql-journal.ts'
export type { JournalKey } from './store/store.ts'
