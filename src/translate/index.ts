export { codeIdOf, historyKey, toCodeQuery, toHistory, toHistoryQueries } from './expressions.ts'
export { isReplyTo, type RecordMapping, toFlatRecord, toFlatReply, toV3Record } from './record.ts'
export {
  v2ErrorRules,
  type ErrorMappingRule,
  type FailedOutcome,
  toV2Failure,
  toV2Refusal,
  withoutPlaces,
} from './errors.ts'
export { printSelection } from '../odata/index.ts'
export { readNextLink } from './next-link.ts'
export { createReadPlanner, type ReadPlan, type ReadPlanner } from './query.ts'
export {
  hasKey,
  readGuidKey,
  toV3RegistrationPath,
  toV3RegistrationQuery,
  writeLegacyMetadata,
  writeLegacyServiceDocument,
} from './read-targets.ts'
export { createRowReader, type ReadRow, type ReadRules } from './read-rules.ts'
export {
  decideReadBack,
  type ReadBack,
  type ReadBackFacts,
  readMarks,
  toReadBackFilter,
  toV2ReadBackFilter,
  toV3Page,
} from './read-back.ts'
export { parseTime } from './stored-values.ts'
export {
  type Echo,
  type EchoProfile,
  formatProfile,
  freshProfile,
  joinProfiles,
  learnEcho,
  parseProfile,
} from './echo-profile.ts'
