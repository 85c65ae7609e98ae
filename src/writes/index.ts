export { createActiveRecords } from './active-records.ts'
export { answerWrites } from './answer.ts'
export { createEchoLearning, type EchoLearning, type WriteContext } from './context.ts'
export {
  type Plan,
  type PlannedRecord,
  type PlannedRequest,
  planRecord,
  planWrites,
  type PartPreferences,
} from './plan.ts'
export { createPredecessorWatch, watchGiveWay } from './predecessors.ts'
export { createRecovery, type Recovery } from './recovery.ts'
export { replayOnV2 } from './relayed-replay.ts'
export { type RelayEnd, type ReplyReading, statusesOfParts } from './relayed-reply.ts'
export { beginRelayed, isKnowable, type RelayedBatch } from './relayed-write.ts'
export { replayBatch } from './replay.ts'
export { type Answered, type KeptReply, type OpenReply, type Reply, toReplyPart } from './reply.ts'
export type { WriteRequest } from './stored-request.ts'
export { type ReadMarkOfV2, waitForOlder } from './wait-for-older.ts'
export { readPaced } from './write-session.ts'
