import { fileURLToPath } from 'node:url'

/**
 * Keeps compiled code from one process to the next, for this process's threads and the programs that it starts: compiling is most
 * of the time of a short process. V8 does not count what runs of such code, so a run with coverage does without.
 */
export function keepCompiledCode(): void {
  if (process.env['NODE_V8_COVERAGE'] !== undefined) return
  process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(
    new URL('../../node_modules/.cache/markbridge-tests', import.meta.url),
  )
}
