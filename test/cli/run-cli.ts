import { execFile, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))
const main = `${root}dist/cli/main.js`

export interface CliResult {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs the built command line to its end. */
export function runCli(args: readonly string[], env: Record<string, string> = {}): Promise<CliResult> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [main, ...args],
      { cwd: root, env: { ...process.env, ...env } },
      (error, stdout, stderr) => {
        resolve({
          status: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1,
          stdout,
          stderr,
        })
      },
    )
  })
}

export interface RunningCli {
  /** Resolves with everything printed so far once standard output matches. */
  until(pattern: RegExp): Promise<string>
  /** Sends SIGTERM, or another signal, and resolves with the exit status. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/** Starts the built command line; the caller stops it. */
export function startCli(args: readonly string[], env: Record<string, string> = {}): RunningCli {
  const child = spawn(process.execPath, [main, ...args], { cwd: root, env: { ...process.env, ...env } })
  let printed = ''
  let errors = ''
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  return {
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (pattern.test(printed)) resolve(printed)
        }
        child.stdout.on('data', look)
        void exited.then((code) =>
          reject(new Error(`exited ${String(code)} before ${String(pattern)}: ${printed}${errors}`)),
        )
        look()
      }),
    stop: (signal = 'SIGTERM') => {
      child.kill(signal)
      return exited
    },
  }
}
