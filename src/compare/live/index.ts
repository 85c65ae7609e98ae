export { type AskedRead, createAskSides, failureOf, readAsClient, type SideAnswer } from './ask-sides.ts'
export { assumeOutcome, matchParts } from './assume-reply.ts'
export { compareAccepted, toFollowed } from './check-marks.ts'
export { askedKind, compareAnswers, unfitRead } from './compare-answers.ts'
export { type AcceptedMark, compareReply, readReply } from './compare-reply.ts'
export { fingerprintOf, headOf, type OfferedExchange, type ServedRecord, sizeOf } from './exchange.ts'
export { type FollowedMark, followMarks } from './follow-marks.ts'
export { createLatestMarks } from './latest-marks.ts'
export {
  type CheckEnd,
  checksOf,
  comparedPercent,
  createComparisonEngine,
  isCompared,
  keysOf,
  type LiveComparison,
} from './live-comparison.ts'
export { factsOf, markKey, readBody, recordedMs, unwrapped } from './marks.ts'
export { createPace, type PaceRefusal, type PaceStore } from './pace.ts'
export type { WireExchange, WireReply } from '../wire-exchange.ts'
