import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { mainOfCli } from '../support/main-of-cli.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

export interface CliResult {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs the built command line until it ends; `input` is its standard input. */
export function runCli(
  args: readonly string[],
  env: Record<string, string> = {},
  input = '',
): Promise<CliResult> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [mainOfCli, ...args],
      { cwd: root, env: { ...process.env, ...env } },
      (error, stdout, stderr) => {
        resolve({
          status: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1,
          stdout,
          stderr,
        })
      },
    )
    // A command that does not read its input may have ended before the input is written.
    child.stdin?.on('error', () => undefined).end(input)
  })
}

export interface RunningCli {
  readonly pid: number | undefined
  /** Returns the output on standard error so far, which is the log. */
  errors(): string
  /** Resolves with the output on standard error so far once it matches. */
  untilErrors(pattern: RegExp): Promise<string>
  /** Resolves with the exit status and the whole output. */
  ended(): Promise<CliResult>
  /** Resolves with the output on standard output so far once it matches. */
  until(pattern: RegExp): Promise<string>
  /** Resolves with the first JSON line of the log that has these members. */
  logged(members: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>>
  /** Sends SIGTERM or another signal, and resolves with the exit status. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/** Starts the built command line. The caller must stop the process. */
export function startCli(
  args: readonly string[],
  env: Record<string, string> = {},
  main = mainOfCli,
): RunningCli {
  return watch(spawn(process.execPath, [main, ...args], { cwd: root, env: { ...process.env, ...env } }))
}

function watch(child: ChildProcessWithoutNullStreams): RunningCli {
  let printed = ''
  let errors = ''
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const closed = new Promise((resolve) => child.once('close', resolve))
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  /** Calls `find` now and after each output until it returns a value. */
  const seen = <Found>(wanted: string, find: () => Found | undefined): Promise<Found> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = find()
        if (found === undefined) return
        for (const stream of [child.stdout, child.stderr]) stream.off('data', look)
        resolve(found)
      }
      child.stdout.on('data', look)
      child.stderr.on('data', look)
      void exited.then((code) =>
        reject(new Error(`exited ${String(code)} before ${wanted}: ${printed}${errors}`)),
      )
      look()
    })
  return {
    pid: child.pid,
    errors: () => errors,
    untilErrors: (pattern) => seen(String(pattern), () => (pattern.test(errors) ? errors : undefined)),
    ended: async () => {
      const [status] = await Promise.all([exited, closed])
      return { status: status ?? -1, stdout: printed, stderr: errors }
    },
    until: (pattern) => seen(String(pattern), () => (pattern.test(printed) ? printed : undefined)),
    logged: (members) =>
      seen(JSON.stringify(members), () =>
        linesOf(errors).find((line) =>
          Object.entries(members).every(([name, value]) => line[name] === value),
        ),
      ),
    stop: (signal = 'SIGTERM') => {
      child.kill(signal)
      return exited
    },
  }
}

/** Parses the complete JSON lines of a log. */
function linesOf(log: string): Record<string, unknown>[] {
  const lines = log.split('\n').slice(0, -1)
  return lines
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}
