import { fileURLToPath } from 'node:url'

/**
 * Shares compiled code between processes, for the threads of this process and the programs that it starts, because a short process spends
 * most of its time compiling. V8 does not count coverage of such code, so a run with coverage does not use it.
 */
export function keepCompiledCode(): void {
  if (process.env['NODE_V8_COVERAGE'] !== undefined) return
  process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(
    new URL('../../node_modules/.cache/markbridge-tests', import.meta.url),
  )
}
