export {
  advise,
  type Advice,
  type AdviceInput,
  defaultThresholds,
  nextStep,
  type SeenWrites,
} from './advise.ts'
export {
  type ComparisonFigures,
  type ComparisonThresholds,
  type NeededCheck,
  neededCheck,
} from './advise-comparison.ts'
export { createFileStages } from './file-stages.ts'
export type { FileStage, KnownWrite, LiveStages, StageEntry, StagedPartner } from './live-stages.ts'
export { isWriteKind, type RequestKind, type Side, type Stage, stages } from './stage.ts'
export { backOf, judgeStep, nextOf } from './steps.ts'
export { createRolloutStore } from './store/create-rollout-store.ts'
export { type OpenedRolloutStore, openRolloutStore } from './store/open-rollout-store.ts'
export { driveApproved, driveForward, type DriveResult } from './store/drive-forward.ts'
export type { RolloutSnapshot, RolloutStore } from './store/rollout-store.ts'
export { noEvidence } from './guards/evidence.ts'
export { GUARD_NAME, goBack } from './guards/go-back.ts'
export { badOf, describeAlarm, type GuardVerdict, judge } from './guards/judge.ts'
export {
  createLiveGuards,
  type GuardedWrite,
  type GuardSettings,
  type LiveGuards,
  noGuards,
  readEvidence,
} from './guards/live-guards.ts'
export type { Trial, TrialResult } from './guards/trial-windows.ts'
export { createStoredStages } from './live/stored-stages.ts'
export type { KeptSnapshots } from './live/kept-snapshot.ts'
export type { StageEvents, StoredStages } from './live/options.ts'
export { stageTable } from './stage-table.ts'
export { toEvidenceKey } from './evidence/evidence-key.ts'
export { createEvidenceStore } from './evidence/create-evidence-store.ts'
export type {
  EvidenceEntry,
  EvidenceKey,
  EvidenceScope,
  EvidenceStore,
  HashedPair,
  KeptEvidence,
  PeriodKey,
  PairCounts,
} from './evidence/evidence-store.ts'
export { codeFingerprint } from './seen/distinct-count.ts'
