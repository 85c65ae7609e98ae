import { fileURLToPath } from 'node:url'

/** The program as it was built. */
export const mainOfCli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
