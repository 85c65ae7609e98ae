/** The used part of a package that has no types of its own. */
declare module '@bcoe/v8-coverage' {
  import type { Profiler } from 'node:inspector'

  /** Adds up what several processes ran of one script. Undefined for no coverage at all. */
  export function mergeScriptCovs(
    coverages: readonly Profiler.ScriptCoverage[],
  ): Profiler.ScriptCoverage | undefined
}
