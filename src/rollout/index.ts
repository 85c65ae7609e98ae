export { createFileStages } from './file-stages.ts'
export type { FileStage, LiveStages, StageEntry, StagedPartner } from './live-stages.ts'
export { isWriteKind, type RequestKind, type Side, type Stage, stages } from './stage.ts'
