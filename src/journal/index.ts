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
