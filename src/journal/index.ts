export {
  adoptJournal,
  type Adopted,
  type AdoptOptions,
  examineJournal,
  type JournalCondition,
} from './adopt.ts'
export type {
  Balance,
  BatchIdentity,
  BeginResult,
  ConfirmedMark,
  DueRecords,
  Journal,
  KnownBatch,
  KnownMarks,
  NewBatch,
  NewRecord,
  ReopenResult,
  OlderUnsettled,
  RecordRef,
  RecordState,
  Predecessors,
  Settled,
  StoredBatch,
  StoredRecord,
  TakenOver,
  Verdict,
} from './journal.ts'
export { isDamagedBatch } from './store.ts'
export { createLateJournal } from './late-journal.ts'
export { createNoJournal } from './none.ts'
export { type JournalOptions, openJournal } from './open-journal.ts'
export type { RateLimit, SharedRateLimit } from './rate-slots.ts'
export {
  type DatabaseOptions,
  type JournalDatabase,
  openJournalDatabase,
  type OpenedDatabase,
} from './journal-database.ts'
export {
  dismissLost,
  dropGone,
  isLive,
  type LiveInstance,
  type LostInstance,
  ownIdentity,
  readLiveInstances,
  readLostInstances,
  readUncleanEnd,
} from './instances.ts'
export type { JournalTables } from './tables.ts'
export { unsettledRows } from './read-records.ts'
export type { DurableJournal, JournalEvents } from './sql-journal.ts'
export type { JournalKey } from './seal.ts'
export {
  type BatchFilter,
  type BatchReport,
  type BatchSummary,
  type CheckedBalance,
  type JournalInspector,
  openInspector,
  type RecordSummary,
} from './inspect.ts'
export type { Purged, Retention } from './retention.ts'
export type { Erased, LearnerSearch } from './erase-learner.ts'
