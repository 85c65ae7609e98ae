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
  FoundBatch,
  Journal,
  KnownMarks,
  NewBatch,
  NewRecord,
  ReopenResult,
  OlderOpen,
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
export { isDamagedBatch } from './store/damage.ts'
export { createLateJournal } from './late-journal.ts'
export { createNoJournal } from './none.ts'
export { type JournalOptions, openJournal } from './open-journal.ts'
export type { RateLimit, SharedRateLimit } from './rate-limit/rate-limit.ts'
export {
  type DatabaseOptions,
  type JournalDatabase,
  openJournalDatabase,
  type OpenedDatabase,
} from './journal-database.ts'
export { isLive, type LiveInstance, readLiveInstances } from './lease/live-instances.ts'
export { dismissLost, dropGone, type LostInstance, readLostInstances } from './lease/lost-instances.ts'
export { ownIdentity } from './lease/process-identity.ts'
export { readUncleanEnd } from './lease/unclean-ends.ts'
export type { JournalTables } from './schema/tables.ts'
export { unsettledRows } from './unsettled.ts'
export type { DurableJournal } from './sql-journal.ts'
export type { JournalEvents } from './sql-journal.ts'
export type { JournalKey } from './store/store.ts'
export { type JournalInspector, openInspector } from './inspect/open-inspector.ts'
export type { BatchReport } from './inspect/open-inspector.ts'
export type { CheckedBalance } from './inspect/check-balances.ts'
export type { BatchFilter, BatchSummary } from './inspect/list-batches.ts'
export type { RecordSummary } from './inspect/list-records.ts'
export type { Purged, Retention } from './purge.ts'
export type { Erased, LearnerSearch } from './erase-learner.ts'
