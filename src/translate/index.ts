export { historyKey, toHistory, toHistoryQueries } from './history-queries.ts'
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
export { codeIdOf, toCodeQuery } from './code-lookup.ts'
export { createReadPlanner, type ReadPlan, type ReadPlanner } from './query.ts'
export { readGuidKey } from './read-key.ts'
export { createRowReader, type ReadRow, type ReadRules } from './read-rules.ts'
export {
  decideReadBack,
  type ReadBack,
  type ReadBackFacts,
  readMarks,
  toReadBackFilter,
} from './read-back.ts'
export { parseTime } from './stored-time.ts'
export { toV2ReadBackFilter, toV3Page } from './read-back-v2.ts'
export {
  type Echo,
  type EchoProfile,
  formatProfile,
  freshProfile,
  isSameProfile,
  joinProfiles,
  learnEcho,
  parseProfile,
} from './echo-profile.ts'
export { toV3RegistrationPath, toV3RegistrationQuery } from './registration.ts'
export { metadataTypes, writeLegacyMetadata, writeLegacyServiceDocument } from './legacy-documents.ts'
