export {
  type V3Client,
  type V3ClientOptions,
  type V3Credentials,
  type V3Writes,
  createV3Client,
} from './client/v3-client.ts'
export type { BatchChoice } from './client/batch/batch-posts.ts'
export {
  createV3Reader,
  type ReadOutcome,
  type V3Reader,
  type V3ReaderOptions,
} from './client/read-client.ts'
export { runOrdered } from './client/run-ordered.ts'
export type { PostOutcome, UnknownReason } from './errors/post-outcome.ts'
export { readUpstreamError, type UpstreamError, type UpstreamErrorEntry } from './errors/upstream-error.ts'
export { type BodyProfile, encodeRecord } from './record/encode-record.ts'
export { type V3Record, type V3Reply, ZERO_GUID } from './record/v3-record.ts'
