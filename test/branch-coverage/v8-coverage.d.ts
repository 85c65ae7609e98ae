/** Declares the only function that the tests use of this package, which has no types. */
declare module '@bcoe/v8-coverage' {
  import type { Profiler } from 'node:inspector'

  /** Adds up the coverage of one script in several processes. Returns `undefined` for an empty list. */
  export function mergeScriptCovs(
    coverages: readonly Profiler.ScriptCoverage[],
  ): Profiler.ScriptCoverage | undefined
}
