export {
  type Batch,
  type BatchPart,
  batchPath,
  decodeBatch,
  decodeBatchInSteps,
  type DecodeOptions,
} from './batch/decode-batch.ts'
export {
  type BatchEncoder,
  type BatchLayout,
  createBatchEncoder,
  encodeMismatch,
  locationOf,
  type PartReply,
} from './batch/encode-batch.ts'
export { describeMisencoding, isUtf16 } from './multipart/misencoded.ts'
export { readBoundary } from './multipart/parts.ts'
export { isGenericClient, type MetadataLevel, readPreferences } from './http-part/head.ts'
export { type BatchLimits, defaultBatchLimits, noBatchLimits } from './limits.ts'
export { encodeErrorArray, type V2Error } from './record/flat-reply.ts'
export { decodeRecord, decodeRecordBytes, type FlatRecord, type RecordFault } from './record/decode-record.ts'
export {
  createRowEncoder,
  encodeFlatPage,
  encodeFlatReply,
  envelopRecord,
  type FlatReply,
  type FlatRow,
} from './record/flat-reply.ts'
export {
  type BatchReply,
  decodeBatchReply,
  decodeBatchReplyInSteps,
  openReplyDecoding,
  type ReplyPart,
} from './batch/decode-reply.ts'
export type { Finding } from './inspect/inspect-parts.ts'
export { guessBoundary, inspectBatchInSteps, toFinding, toFindings } from './inspect/inspect-batch.ts'
