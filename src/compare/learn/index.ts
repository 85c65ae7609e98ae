export { createLearning, type Learned, learnedOf, learnRecordings } from './learned.ts'
export { type LearnedExchange, observeExchange } from './observe-exchange.ts'
export { formatPatch, type LearnableSettings, propose } from './propose.ts'
