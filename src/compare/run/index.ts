export { isRunName, openRunFiles, replaceFile, type Checkpoint, type RunFiles } from './run-files.ts'
export { parseLearnerList, sampleLearners } from './learners.ts'
export { listLearners } from './queries.ts'
export {
  type RunOptions,
  type RunResult,
  type RunSource,
  type RunStep,
  runComparison,
} from './run-comparison.ts'
export {
  type AdapterSide,
  type ComparedSide,
  createAdapterSide,
  createUpstreamSide,
  type OpenSession,
  readSidePage,
} from './sides.ts'
export { createWindowSource } from './window-source.ts'
export { DAY_MS, formatDay, parseDay } from './windows.ts'
