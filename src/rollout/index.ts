export { type ComparisonFigures, type EvidenceThresholds, type NeededCheck } from './advise.ts'
export {
  createFileStages,
  type FileStage,
  type KnownWrite,
  type LiveStages,
  type StageEntry,
} from './decide.ts'
export { codeFingerprint, countName, type Counts, countsOf } from './evidence/count-name.ts'
export {
  createEvidenceStore,
  type EvidenceEntry,
  type EvidenceStore,
  type HashedPair,
  MAX_PAIRS,
} from './evidence/evidence-store.ts'
export { createEvidenceKeeper, type EvidenceKeeper } from './evidence/keep-evidence.ts'
export { checkBits, type EvidenceKey, type PeriodKey, toEvidenceKey } from './evidence/evidence-key.ts'
export { type CountedEvidence, type EvidenceScope, type KeptEvidence } from './evidence/read-kept.ts'
export { createLiveGuards, type LiveGuards, noGuards } from './guards/live-guards.ts'
export type { TrialResult } from './guards/trial-windows.ts'
export type { KeptStages } from './live/known-stages.ts'
export { createStoredStages, type StoredStages } from './live/stored-stages.ts'
export { backOf, isWriteKind, judgeStep, nextOf, type RequestKind, type Side, type Stage } from './stage.ts'
export { createRolloutStore, type OpenedRolloutStore, openRolloutStore } from './store/rollout-store.ts'
export { driveForward } from './store/drive-change.ts'
export type { RolloutStore } from './store/rollout-store.ts'
