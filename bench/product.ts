import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import { onCore } from './child.ts'

/** A running `markbridge serve` of the built program. */
export interface Product {
  readonly url: string
  /** Returns the largest resident size of the program so far, in bytes (Linux only). */
  peakRss(): number
  stop(): Promise<void>
}

/** Starts `markbridge serve` with these options, as the npm script does. Moves it to `core` if the machine allows this. */
export async function startProduct(options: readonly string[], core: number): Promise<Product> {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-bench-'))
  const log = openSync(join(folder, 'stderr'), 'w')
  const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
  const command = [process.execPath, '--max-semi-space-size=16', main, 'serve', '--port', '0', ...options]
  const [file = '', ...args] = onCore(command, core)
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', log], cwd: folder })
  closeSync(log)
  const { stdout } = child
  if (stdout === null) throw new Error('no standard output')
  for await (const line of createInterface({ input: stdout })) {
    const url = / ready (http\S+)$/.exec(line)?.[1]
    if (url === undefined) continue
    stdout.resume()
    return {
      url,
      peakRss: () => {
        const status = readFileSync(`/proc/${child.pid ?? 0}/status`, 'utf8')
        return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
      },
      stop: async () => {
        const closed = once(child, 'close')
        child.kill()
        await closed
        rmSync(folder, { recursive: true })
      },
    }
  }
  throw new Error(`markbridge serve failed: ${readFileSync(join(folder, 'stderr'), 'utf8')}`)
}
