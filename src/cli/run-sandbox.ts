import { loadValues } from '../config/index.ts'
import { createSandbox, sandboxFileSchema, type SandboxOptions } from '../sandbox/index.ts'
import { runUntilStopped } from './run-until-stopped.ts'

/** The flags of `sandbox`. */
export type SandboxFlags = SandboxOptions & { readonly config?: string }
type Values = Readonly<Record<string, unknown>>

/** Runs the sandbox until a signal stops it; `flags` override the file at `path`. */
export async function runSandbox(path: string | undefined, flags: Values): Promise<void> {
  const complete = (values: Values): Values => withDefaults({ ...values, ...flags })
  const options =
    path === undefined
      ? (complete({}) as SandboxOptions)
      : await loadValues(path, sandboxFileSchema, complete)
  const sandbox = createSandbox(options, { onProgress: showProgress })
  await runUntilStopped(async (onClose) => {
    onClose(() => sandbox.close())
    const { url, v2Url } = await sandbox.listen()
    console.log(`sandbox ready ${url}`)
    if (v2Url !== url) console.log(`sandbox v2 ready ${v2Url}`)
  })
}

/** The defaults of the command: a fixed port, and a file for a school, which takes seconds to build. */
function withDefaults(values: Values): Values {
  const { scale, seed = 1 } = values
  const file = scale === 'school' ? { db: `./data/sandbox-school-${String(seed)}.db` } : {}
  return { port: 4010, ...file, ...values }
}

/** Draws a progress bar on a terminal while a school is built. */
function showProgress(share: number): void {
  if (!process.stderr.isTTY) return
  const filled = Math.round(share * 40)
  process.stderr.write(
    `\rbuilding ${'█'.repeat(filled)}${'░'.repeat(40 - filled)} ${Math.round(share * 100)} %`,
  )
  if (share >= 1) process.stderr.write('\r\u001b[K')
}
