export { adoptJournal, type Adopted, examineJournal, type JournalCondition } from './adopt.ts'
export type {
  Balance,
  BeginResult,
  ConfirmedMark,
  Journal,
  KnownBatch,
  KnownMarks,
  NewBatch,
  NewRecord,
  ReopenResult,
  RecordRef,
  RecordState,
  Predecessors,
  Settled,
  StoredBatch,
  StoredRecord,
} from './journal.ts'
export { describeCause, formatCause } from './causes.ts'
export { openJournalLater } from './late-journal.ts'
export { ofEachState, recordStates, selectStates, stateCodes, stateColumns } from './lifecycle.ts'
export { createNoJournal } from './none.ts'
export { type DurableJournal, type JournalOptions, LEASE_MS, openJournal } from './sql-journal.ts'
export type { SharedRateLimit } from './rate-slots.ts'
export {
  type DatabaseOptions,
  type JournalDatabase,
  openJournalDatabase,
  sqlitePathOf,
  tryOpening,
} from './open-store.ts'
export {
  dismissLost,
  dropGone,
  isLive,
  type LostInstance,
  readLiveInstances,
  readLostInstances,
  readUncleanEnd,
} from './instances.ts'
export { ownIdentity } from './process-identity.ts'
export { openSecret } from './keys.ts'
export { type JournalTables, readMeta, readSalt } from './schema.ts'
export { readV2Clients, type V2Client } from './read-clients.ts'
export { isDue, readBalances, settledAmong } from './read-records.ts'
export {
  createKeyHash,
  decrypt,
  encrypt,
  hashMarkId,
  type JournalKey,
  linkSecretOf,
  NO_KEY,
  unpackAnswers,
  unseal,
  type Unsealing,
} from './seal.ts'
export {
  type BatchReport,
  type BatchSummary,
  type CheckedBalance,
  type JournalInspector,
  fitTotals,
  openInspector,
  readRecordSummaries,
  type RecordSummary,
} from './inspect.ts'

export type { Erased, LearnerSearch } from './erase-learner.ts'
