export { type ComparisonFigures, type EvidenceThresholds, type NeededCheck } from './advise.ts'
export { stageTable } from './decide.ts'
export {
  createFileStages,
  type FileStage,
  type KnownWrite,
  type LiveStages,
  type StageEntry,
} from './live-stages.ts'
export { isWriteKind, type RequestKind, type Side, type Stage } from './stage.ts'
export { backOf, judgeStep, nextOf } from './steps.ts'
export {
  createRolloutStore,
  type OpenedRolloutStore,
  openRolloutStore,
} from './store/create-rollout-store.ts'
export { driveForward } from './store/drive-change.ts'
export type { RolloutStore } from './store/rollout-store.ts'
export { createLiveGuards, type LiveGuards, noGuards } from './guards/live-guards.ts'
export type { TrialResult } from './guards/trial-windows.ts'
export { createStoredStages, type StoredStages } from './live/stored-stages.ts'
export type { KeptSnapshots } from './live/kept-snapshot.ts'
export { type EvidenceEntry, type HashedPair, MAX_PAIRS } from './evidence/add-entries.ts'
export { addCounts, codeFingerprint, countName, type Counts, countsOf } from './evidence/count-name.ts'
export { createEvidenceStore, type EvidenceStore } from './evidence/evidence-store.ts'
export { createEvidenceKeeper, type EvidenceKeeper } from './evidence/keep-evidence.ts'
export { type EvidenceKey, type PeriodKey, toEvidenceKey } from './evidence/periods.ts'
export { checkBits, type EvidenceScope, type KeptEvidence } from './evidence/read-kept.ts'
