import { fileURLToPath } from 'node:url'

/** The program as it was built; its source where coverage is counted, so that all counts are of the same text. */
export const mainOfCli = fileURLToPath(
  new URL(
    process.env['NODE_V8_COVERAGE'] === undefined ? '../../dist/cli/main.js' : '../../src/cli/main.ts',
    import.meta.url,
  ),
)
