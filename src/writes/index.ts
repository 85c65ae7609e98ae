export { createActiveRecords } from './active-records.ts'
export { answerWrites } from './answer.ts'
export { createEchoLearning, type EchoLearning, type WriteContext } from './context.ts'
export { type Plan, type PlannedRequest, planWrites } from './plan.ts'
export { createPredecessorWatch, watchGiveWay } from './predecessors.ts'
export { createRecovery } from './recovery.ts'
export {
  forgotten,
  type ReadMarkOfV2,
  type RelayEnd,
  replayOnV2,
  type ReplyReading,
  statusesOfParts,
} from './relayed-reply.ts'
export { beginRelayed, isKnowable, type RelayedBatch, waitForOlder } from './relayed-write.ts'
export { replayBatch } from './replay.ts'
export { type Answered, type KeptReply, type OpenReply, type Reply } from './reply.ts'
export { toWriteRequest, type WriteRequest } from './stored-request.ts'
export { readPaced } from './write-session.ts'
