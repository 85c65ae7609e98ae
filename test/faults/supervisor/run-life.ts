import { type ChildProcess, spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { mainWithOverrides } from '../../support/main-of-cli.ts'
import { type Failpoint, failpointVariable, formatFailpoint } from '../failpoints/failpoint.ts'

const preload = fileURLToPath(new URL('../failpoints/preload.ts', import.meta.url))

/** One process of the adapter, from its start to its end. */
export interface Life {
  readonly pid: number
  /** Resolves with the milliseconds from start to ready, or with `undefined` if the process ended before. */
  readonly ready: Promise<number | undefined>
  readonly ended: Promise<LifeEnd>
  kill(signal: NodeJS.Signals): void
}

/** How a process ended, with the last lines of its log. */
export interface LifeEnd {
  readonly status: number | null
  readonly signal: NodeJS.Signals | null
  readonly log: string
}

export interface LifeOptions {
  readonly configFile: string
  /** Additional arguments of `serve`. */
  readonly args: readonly string[]
  readonly failpoint?: Failpoint | undefined
  /** Modules that are loaded into the program. */
  readonly imports?: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Receives the whole log of the process. */
  readonly logFile?: string | undefined
}

const MAX_LOG = 4_000

/** Starts the built adapter. */
export function startLife({ configFile, args, failpoint, imports = [], env, logFile }: LifeOptions): Life {
  const startedMs = performance.now()
  const modules = failpoint === undefined ? imports : [...imports, preload]
  const loaded = modules.flatMap((path) => ['--import', path])
  const child = spawn(
    process.execPath,
    [...loaded, mainWithOverrides, 'serve', '--config', configFile, ...args],
    {
      env: {
        ...process.env,
        ...env,
        [failpointVariable]: formatFailpoint(failpoint),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => {
    if (logFile !== undefined) appendFileSync(logFile, chunk)
    log = (log + chunk.toString()).slice(-MAX_LOG)
  })
  const ended = new Promise<LifeEnd>((resolve) => {
    child.once('close', (status, signal) => {
      resolve({ status, signal, log })
    })
  })
  return {
    pid: child.pid ?? 0,
    ready: untilReady(child, startedMs),
    ended,
    kill: (signal) => void child.kill(signal),
  }
}

function untilReady(child: ChildProcess, startedMs: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    let printed = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      printed += chunk.toString()
      if (/^adapter ready /m.test(printed)) resolve(performance.now() - startedMs)
    })
    child.once('close', () => {
      resolve(undefined)
    })
  })
}
