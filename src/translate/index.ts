export {
  isReplyTo,
  type RecordMapping,
  toFlatRecord,
  toFlatReply,
  toV3Record,
  type UnmappedPolicy,
  type V3Translation,
} from './record.ts'
export {
  defaultErrorMapping,
  type ErrorMappingRule,
  type FailedOutcome,
  toV2Failure,
  toV2Refusal,
  type V2Failure,
} from './errors.ts'
