export { isRunId, type ListedRun, openRuns, readRunFile, type UnfinishedRun } from './read-runs.ts'
export { isRunName, openRunFiles, type Checkpoint, type RunFiles } from './run-files.ts'
export { listLearners, parseLearnerList } from './queries.ts'
export {
  type RunOptions,
  type RunResult,
  type RunSource,
  type RunStep,
  runComparison,
} from './run-comparison.ts'
export {
  type AdapterSide,
  createAdapterSide,
  createUpstreamSide,
  type OpenSession,
  readSidePage,
} from './sides.ts'
export { createWindowSource } from './window-source.ts'
export { DAY_MS, formatDay } from './windows.ts'
