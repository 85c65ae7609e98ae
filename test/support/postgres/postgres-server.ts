import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { freePort } from '../free-port.ts'
import type { PostgresSource, PostgresUser } from './find-postgres.ts'
import { collectOutput } from './collect-output.ts'
import { makeData, PASSWORD, type Run } from './postgres-data.ts'

const START_MS = 60_000

/** A PostgreSQL that belongs to the test, on loopback, with fsync as in production. The server keeps its port and data over restarts. */
export interface PostgresServer {
  /** The URL `postgres://…` of the database `postgres`. */
  readonly url: string
  readonly port: number
  /** The id of the server's main process, or `undefined` while the server is down. */
  pid(): number | undefined
  /** Starts the server again, and resolves when it accepts connections. */
  start(): Promise<void>
  /** Shuts the server down cleanly, and closes open connections. */
  stop(): Promise<void>
  /** Kills the server at once, without a checkpoint, so that the next start recovers from the log as after a power cut. */
  crash(): Promise<void>
  /** Stops the server and removes its data. */
  remove(): Promise<void>
}

/** Creates a data folder and starts a server on it. Throws an `Error` with the program's output if the start fails. */
export async function startPostgresServer(
  source: Extract<PostgresSource, { kind: 'binaries' }>,
): Promise<PostgresServer> {
  const { folder, user } = source
  const home = mkdtempSync(join(tmpdir(), 'markbridge-postgres-'))
  const data = join(home, 'data')
  if (user !== undefined) chownSync(home, user.uid, user.gid)
  const port = await freePort()
  const run: Run = (program, args) =>
    spawn(join(folder, program), args, { ...toIds(user), cwd: home, stdio: ['ignore', 'pipe', 'pipe'] })
  let child: ChildProcess | undefined
  const kill = (): void => void child?.kill('SIGQUIT')
  const remove = async (): Promise<void> => {
    await end('SIGQUIT')
    process.off('exit', kill)
    rmSync(home, { recursive: true, force: true })
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const running = child
    child = undefined
    if (running?.exitCode !== null) return
    const exited = once(running, 'exit')
    running.kill(signal)
    await exited
  }
  const start = async (): Promise<void> => {
    const started = run('postgres', ['-D', data, ...settings(port, home)])
    await untilReady(started)
    child = started
  }
  // An aborted run must not leave a server behind.
  process.once('exit', kill)
  try {
    await makeData(data, { folder, user, run })
    await start()
  } catch (cause) {
    await remove()
    throw cause
  }
  return {
    url: `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`,
    port,
    pid: () => child?.pid,
    start,
    stop: () => end('SIGINT'),
    crash: () => end('SIGQUIT'),
    remove,
  }
}

function settings(port: number, home: string): string[] {
  const chosen = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: home,
    shared_buffers: '16MB',
    max_connections: '100',
    fsync: 'on',
    // `untilReady` looks for the ready line in the output.
    logging_collector: 'off',
    lc_messages: 'C',
  }
  return Object.entries(chosen).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

function toIds(user: PostgresUser | undefined): { uid?: number; gid?: number } {
  return user === undefined ? {} : { uid: user.uid, gid: user.gid }
}

/** Resolves when the server prints its ready line. Rejects with the output if the server ends or is not ready in time. */
function untilReady(child: ChildProcess): Promise<void> {
  const printed = collectOutput(child)
  return new Promise((resolve, reject) => {
    const fail = (): void => {
      clearTimeout(timer)
      child.kill('SIGQUIT')
      reject(new Error(`PostgreSQL did not start: ${printed()}`))
    }
    const timer = setTimeout(fail, START_MS)
    child.once('error', fail).once('exit', fail)
    child.stderr?.on('data', () => {
      if (!printed().includes('ready to accept connections')) return
      clearTimeout(timer)
      child.off('exit', fail)
      resolve()
    })
  })
}
