export type { BatchChoice } from './client/batch.ts'
export {
  createV3Client,
  type SendPermission,
  type V3Client,
  type V3Credentials,
  type V3Writes,
} from './client/post.ts'
export { createV3Reader, type ReadOutcome, type V3Reader } from './client/read.ts'
export { runBounded } from './client/run-bounded.ts'
export {
  type NotAppliedReason,
  type PostOutcome,
  readUpstreamError,
  type SentTogether,
  type UnknownReason,
  type UpstreamError,
  type UpstreamErrorEntry,
} from './outcome.ts'
export { type BodyProfile, encodeRecord, type V3Record, type V3Reply } from './record.ts'
