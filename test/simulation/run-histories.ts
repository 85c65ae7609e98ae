import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const script = fileURLToPath(new URL('run.ts', import.meta.url))

/** Returns the output of `npm run test:simulation` with these arguments. */
export async function runHistories(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  // A finding makes the exit status 1, so `execFile` rejects. The rejection holds the printed findings too.
  const child = run(process.execPath, [script, ...args], {
    maxBuffer: 100_000_000,
    env: { ...process.env, ...env },
  })
  const { stdout } = await child.catch((failed: unknown) => failed as { readonly stdout: string })
  return stdout
}
