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

/** A PostgreSQL of the test's own, on loopback, with fsync as in production; it keeps its port and data when restarted. */
export interface PostgresServer {
  /** `postgres://…`, of the database `postgres`. */
  readonly url: string
  readonly port: number
  /** Of the process that all others of the server come from; undefined while it is down. */
  pid(): number | undefined
  /** Starts it again and resolves when it takes connections. */
  start(): Promise<void>
  /** Shuts down in order; open connections are cut. */
  stop(): Promise<void>
  /** Dies at once, without a checkpoint: the next start recovers from the log, as after a power cut. */
  crash(): Promise<void>
  /** Stops it and removes its data. */
  remove(): Promise<void>
}

/** Makes a data folder and starts a server on it. Errors: an `Error` with what the program printed. */
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
  // A run that is broken off leaves no server behind.
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
    // The ready line is looked for in it.
    logging_collector: 'off',
    lc_messages: 'C',
  }
  return Object.entries(chosen).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

function toIds(user: PostgresUser | undefined): { uid?: number; gid?: number } {
  return user === undefined ? {} : { uid: user.uid, gid: user.gid }
}

/** Resolves with the line that says so; the processes of a crashed server may hold it up, so it says why it gave up. */
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
