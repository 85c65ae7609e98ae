import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import * as z from 'zod'

/** A message of a child process: numbers by name, with the unit in the name. */
export type Numbers = Readonly<Record<string, number>>
const numbers = z.record(z.string(), z.number())

/** A child process of a benchmark. */
export interface Child {
  /** The numbers that the process sent when it was ready, such as its port. */
  readonly ready: Numbers
  ask(command: string): Promise<Numbers>
  /** Moves the threads of the process that have this name to a processor core. Does nothing if `canPin` is false. */
  pinThreads(name: string, core: number): void
  stop(): Promise<void>
}

/** True if this machine has at least two processor cores and `taskset`, which moves a process to a core. */
export const canPin = availableParallelism() >= 2 && spawnSync('taskset', ['--version']).status === 0

/**
 * Starts a script of this folder and waits until it is ready. Moves it to `core` unless `core` is undefined or `canPin` is false. Writes
 * its standard error to a file, as a service does. If the process fails, the error contains the text of that file.
 */
export async function startChild(
  script: string,
  args: readonly (string | number)[],
  core: number | undefined,
): Promise<Child> {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-bench-'))
  const log = join(folder, 'stderr')
  const descriptor = openSync(log, 'w')
  const child = spawnPinned(script, args, core, descriptor)
  closeSync(descriptor)
  const ask = (): Promise<Numbers> => answer(child, () => `${script} failed: ${readFileSync(log, 'utf8')}`)
  const ready = await ask()
  return {
    ready,
    ask: (command) => {
      child.send(command)
      return ask()
    },
    pinThreads: (name, toCore) => {
      if (canPin) pinThreads(child.pid ?? 0, name, toCore)
    },
    stop: async () => {
      if (child.connected) {
        const closed = once(child, 'close')
        child.send('stop')
        await closed
      }
      rmSync(folder, { recursive: true })
    },
  }
}

/** Returns the command that runs `command` on a core. Returns `command` itself if `core` is undefined or `canPin` is false. */
export function onCore(command: readonly string[], core: number | undefined): readonly string[] {
  return canPin && core !== undefined
    ? ['taskset', '-c', String(core % availableParallelism()), ...command]
    : command
}

function spawnPinned(
  script: string,
  args: readonly (string | number)[],
  core: number | undefined,
  stderr: number,
): ChildProcess {
  const path = fileURLToPath(new URL(script, import.meta.url))
  const command = [process.execPath, ...process.execArgv, path, ...args.map(String)]
  const [file = process.execPath, ...rest] = onCore(command, core)
  return spawn(file, rest, { stdio: ['ignore', 'inherit', stderr, 'ipc'] })
}

function pinThreads(process: number, name: string, core: number): void {
  const folder = `/proc/${process}/task`
  // Linux keeps only the first 15 characters of the name of a thread.
  const ids = readdirSync(folder).filter(
    (id) => readFileSync(join(folder, id, 'comm'), 'utf8').trim() === name.slice(0, 15),
  )
  for (const id of ids) pin(Number(id), core)
}

/** Moves a process or a thread to a core, together with every process and thread that it starts from now on. */
export function pin(id: number, core: number): void {
  const { status, stderr } = spawnSync('taskset', [
    '-p',
    '-c',
    String(core % availableParallelism()),
    String(id),
  ])
  if (status !== 0) throw new Error(`${id} cannot be pinned: ${String(stderr)}`)
}

function answer(child: ChildProcess, describeFailure: () => string): Promise<Numbers> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: unknown): void => {
      child.off('exit', onExit)
      resolve(numbers.parse(message))
    }
    const onExit = (): void => {
      child.off('message', onMessage)
      reject(new Error(describeFailure()))
    }
    child.once('message', onMessage).once('exit', onExit)
  })
}

/** Sends `ready` from a child process to its parent, and then answers each command until the parent sends `stop`. */
export function serveCommands(
  ready: Numbers,
  commands: Readonly<Record<string, () => Numbers | Promise<Numbers>>>,
): void {
  const run = async (command: string): Promise<void> => {
    const handler = commands[command]
    if (handler === undefined) process.exit(command === 'stop' ? 0 : 1)
    process.send?.(await handler())
  }
  process.on('message', (command) => {
    void run(String(command))
  })
  process.on('disconnect', () => process.exit(0))
  process.send?.(ready)
}

/** Returns the processor time of this process so far, user and system, in ms. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
