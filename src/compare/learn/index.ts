export { formatPatch } from './format-patch.ts'
export { type Learned, learnedName, parseLearned } from './learned.ts'
export { learnRecordings } from './learn-recordings.ts'
export {
  createLiveLearning,
  type LiveLearning,
  type LiveLearningOptions,
  noLearning,
} from './live-learning.ts'
export { type LearnedExchange, observeExchange } from './observe-exchange.ts'
export { type LearnableSettings, type LearnedProposals, propose } from './propose.ts'
