export {
  type BatchDecoding,
  decodeBatch,
  type DecodeOptions,
  openBatchDecoding,
} from './batch/decode-batch.ts'
export type { Batch, BatchPart } from './batch/batch.ts'
export {
  type BatchEncoder,
  type BatchLayout,
  createBatchEncoder,
  encodeMismatch,
  locationOf,
  type PartReply,
} from './batch/encode-batch.ts'
export { batchPath } from './batch-path.ts'
export { readBoundary } from './multipart/boundary.ts'
export { type MetadataLevel, type Preferences, readPreferences } from './http-part/preferences.ts'
export { type BatchLimits, defaultBatchLimits, noBatchLimits } from './limits.ts'
export { encodeErrorArray, type V2Error } from './errors/error-array.ts'
export { decodeRecord } from './record/decode-record.ts'
export { decodeRecordBytes, readCharset } from './record/record-text.ts'
export {
  FLAT_TYPE,
  type FlatRecord,
  type RecordFault,
  type RecordResult,
  type UnmappedField,
} from './record/flat-record.ts'
export { envelopRecord } from './record/data-envelope.ts'
export { encodeFlatReply, type FlatReply, type FlatRow } from './record/flat-reply.ts'
export { createRowEncoder, encodeFlatPage, type FlatPage } from './record/flat-rows.ts'
export {
  decodeBatchReply,
  decodeReplyInSlices,
  type DecodedReply,
  openReplyDecoding,
  type ReplyDecoding,
} from './batch/decode-reply.ts'
export { decodeReplyForm, type ReplyForm, type ReplyPartForm } from './batch/decode-reply-form.ts'
export type { Finding, Severity } from './inspect/finding.ts'
export {
  inspectBatch,
  inspectBatchInSlices,
  type Inspection,
  toFinding,
  toFindings,
} from './inspect/inspect-batch.ts'
export { isGenericClient } from './generic-client.ts'
export { guessBoundary } from './inspect/guess-boundary.ts'
