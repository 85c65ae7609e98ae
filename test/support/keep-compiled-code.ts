import { fileURLToPath } from 'node:url'

/**
 * Lets the threads of this process and the programs that it starts share compiled code, because a short process spends most of its time
 * compiling. V8 does not count the coverage of shared code, so a run with coverage does not share code.
 */
export function keepCompiledCode(): void {
  if (process.env['NODE_V8_COVERAGE'] !== undefined) return
  process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(
    new URL('../../node_modules/.cache/markbridge-tests', import.meta.url),
  )
}
