import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { Pool } from 'undici'
import { onTestFinished, vi } from 'vitest'

import { type Failpoint, failpointVariable, formatFailpoint } from '../../faults/failpoints/failpoint.ts'
import { type BatchText, batchPath } from '../../support/batch-request.ts'
import { mainWithOverrides, overridesIn } from '../../support/main-of-cli.ts'

const path = (name: string): string => fileURLToPath(new URL(`../../../${name}`, import.meta.url))

/** The value of `JOURNAL_KEY` in the environment of the process. */
export const journalKey = 'ab'.repeat(32)

/** An adapter in its own process, which the test can pause. */
export interface StoppingAdapter {
  readonly url: string
  post(batch: BatchText, headers: Record<string, string>): Promise<{ status: number; text: string }>
  stopped(): Promise<void>
  ended(): Promise<void>
  stop(): void
  goOn(): void
  logged(text: string | RegExp): Promise<void>
  /** Kills the process with SIGKILL, and resolves when it has ended. */
  kill(): Promise<void>
  /** Stops the process with SIGTERM, and resolves once the process has finished its work in progress and has ended. */
  close(): Promise<void>
}

/** Starts the built adapter on a configuration. With `failpoint`, the process kills itself at that moment. */
export async function startStopping(
  config: object,
  { failpoint, leaseMs }: { readonly failpoint?: Failpoint; readonly leaseMs?: number } = {},
): Promise<StoppingAdapter> {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-stopping-'))
  const file = join(folder, 'markbridge.yaml')
  writeFileSync(file, JSON.stringify({ listen: { port: 0 }, ...config }))
  const preload = failpoint === undefined ? [] : ['--import', path('test/faults/failpoints/preload.ts')]
  const child = spawn(process.execPath, [...preload, mainWithOverrides, 'serve', '--config', file], {
    env: {
      ...process.env,
      JOURNAL_KEY: journalKey,
      ...overridesIn({ leaseMs }),
      [failpointVariable]: formatFailpoint(failpoint),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (printed += text))
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const seen = (text: string | RegExp): Promise<void> =>
    vi.waitFor(
      () => {
        if (printed.search(text) < 0) throw new Error(`not logged: ${String(text)} in ${printed}`)
      },
      { timeout: 60_000 },
    )
  await seen(/adapter ready \S+/)
  const url = /adapter ready (\S+)/.exec(printed)?.[1] ?? ''
  const pool = new Pool(url, { headersTimeout: 0 })
  onTestFinished(async () => {
    child.kill('SIGCONT')
    child.kill('SIGKILL')
    await gone
    await pool.destroy()
    rmSync(folder, { recursive: true })
  })
  const { pid = 0 } = child
  return {
    url,
    post: async ({ headers: own, body }, headers) => {
      const request = { method: 'POST', path: batchPath, headers: { ...own, ...headers }, body } as const
      const reply = await pool.request(request)
      return { status: reply.statusCode, text: await reply.body.text() }
    },
    stopped: () =>
      vi.waitFor(
        () => {
          // Field 3 is the state of the process (proc(5)).
          const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
          if (stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'T')
            throw new Error('the process goes on')
        },
        { timeout: 60_000 },
      ),
    ended: () => gone,
    stop: () => void child.kill('SIGSTOP'),
    goOn: () => void child.kill('SIGCONT'),
    logged: (text) => seen(text),
    kill: async () => {
      child.kill('SIGKILL')
      await gone
    },
    close: async () => {
      child.kill('SIGTERM')
      await gone
    },
  }
}
