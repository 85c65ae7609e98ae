export {
  type AskAuthorisation,
  type AskedRead,
  type AskOptions,
  createAskSides,
  failureOf,
  type SideAnswer,
} from './ask-sides.ts'
export { assumeOutcome } from './assume-outcome.ts'
export { askedKind } from './check-answers.ts'
export { compareAccepted, toFollowed } from './check-marks.ts'
export { type CheckEnd, createChecks } from './checks.ts'
export {
  type ComparisonEngine,
  createComparisonEngine,
  keysOf,
  type LiveComparison,
} from './live-comparison.ts'
export {
  fieldOf,
  type OfferedExchange,
  type OfferedReply,
  type ServedRecord,
  sizeOf,
} from './offered-exchange.ts'
export {
  type ClientLimit,
  comparisonQueueKey,
  createPacedSides,
  type PacedSides,
  SILENCE_MS,
} from './paced-side.ts'
export type { HiddenOutcomes } from './hidden-outcome.ts'
export { createProcessorShare } from './processor-share.ts'
export { checksOf, isCompared, isDrawn } from './sampling.ts'
export { offerBounds } from './offer-queue.ts'
export type { PaceStore } from './shared-pace.ts'
export { compareAnswers, unfitRead } from './compare-answers.ts'
export { type AcceptedMark, compareReply } from './compare-reply.ts'
export { plainly } from './findings.ts'
export { factsOf, isObject, markKey } from './flat-mark.ts'
export { followMarks } from './follow-marks.ts'
export { createLatestMarks } from './latest-marks.ts'
export { matchParts } from './match-parts.ts'
export type { FollowedMark } from './read-marks.ts'
export { readBody } from './reply-bodies.ts'
