/** The part that the tests use of a package without types. */
declare module '@bcoe/v8-coverage' {
  import type { Profiler } from 'node:inspector'

  /** Adds up the coverage of one script in several processes. Returns `undefined` for an empty list. */
  export function mergeScriptCovs(
    coverages: readonly Profiler.ScriptCoverage[],
  ): Profiler.ScriptCoverage | undefined
}
