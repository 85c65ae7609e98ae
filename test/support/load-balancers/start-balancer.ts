import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { onTestFinished } from 'vitest'

import { findProgram } from '../find-program.ts'
import { freePort } from '../free-port.ts'

/** A load balancer that has a configuration in `deploy/`. */
export interface Balancer {
  readonly program: 'nginx' | 'haproxy'
  /** The name of the file in `deploy/`. */
  readonly file: string
  /** Returns the configuration for this machine, which differs from the file in `deploy/` only in addresses, certificate and folders. */
  readonly adapt: (text: string, place: BalancerPlace) => string
  readonly args: (configFile: string, folder: string) => readonly string[]
  /** Takes the instance out of rotation or puts it back, as docs/operations.md describes. Resolves when requests follow the change. */
  readonly rotate: (running: RotatedBalancer, port: number, isIn: boolean) => Promise<void>
}

interface RotatedBalancer {
  readonly folder: string
  readonly configFile: string
  readonly process: ChildProcess
}

interface BalancerPlace {
  readonly port: number
  /** The ports of the instances in the order of the file. If there are fewer than three, the first port is reused. */
  readonly adapterPorts: readonly number[]
  /** The folder for all files that the load balancer writes. */
  readonly folder: string
}

/** The addresses of the instances in the files of `deploy/`. */
const INSTANCE = /10\.0\.0\.1[123]:8080/g
const START_MS = 10_000

export const nginx: Balancer = {
  program: 'nginx',
  file: 'nginx.conf',
  adapt: (text, { port, adapterPorts, folder }) => {
    const site = replaceEach(text, [
      [/listen 443 ssl;/g, `listen 127.0.0.1:${port};`],
      [/^\s*ssl_certificate(?:_key)? .*$/gm, ''],
      [INSTANCE, inOrder(adapterPorts)],
      [/\/dev\/shm\/markbridge-nginx/g, `${folder}/bodies`],
      [/\/var\/log\/nginx\/markbridge\.\w+\.log/g, `${folder}/log`],
    ])
    const folders = ['proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${folder}/${name};`,
    )
    return [
      ...(process.getuid?.() === 0 ? ['user root;'] : []),
      `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log stderr warn;`,
      'events { worker_connections 256; }',
      `http { ${folders.join(' ')}`,
      site,
      '}',
    ].join('\n')
  },
  args: (configFile, folder) => ['-p', folder, '-c', configFile],
  rotate: async ({ configFile, process: master }, port, isIn) => {
    const workers = (): string[] =>
      spawnSync('pgrep', ['-P', String(master.pid)], { encoding: 'utf8' })
        .stdout.trim()
        .split('\n')
    const before = workers()
    const line = new RegExp(`(server 127\\.0\\.0\\.1:${port} [^;]*?)(?: down)?;`)
    writeFileSync(configFile, readFileSync(configFile, 'utf8').replace(line, `$1${isIn ? '' : ' down'};`))
    master.kill('SIGHUP')
    while (workers().some((worker) => before.includes(worker))) await delay(20)
  },
}

export const haproxy: Balancer = {
  program: 'haproxy',
  file: 'haproxy.cfg',
  adapt: (text, { port, adapterPorts, folder }) =>
    replaceEach(text, [
      [/bind :443 ssl crt \S+/g, `bind 127.0.0.1:${port}`],
      [/\/run\/haproxy/g, folder],
      [INSTANCE, inOrder(adapterPorts)],
    ]),
  args: (configFile) => ['-db', '-f', configFile],
  rotate: async ({ folder, configFile }, port, isIn) => {
    const name = new RegExp(`server (\\w) 127\\.0\\.0\\.1:${port}`).exec(
      readFileSync(configFile, 'utf8'),
    )?.[1]
    const ask = async (command: string): Promise<string> => {
      const socket = connect(join(folder, 'admin.sock'))
      socket.end(`${command}\n`)
      return text(socket)
    }
    await ask(`set server markbridge/${name} state ${isIn ? 'ready' : 'drain'}`)
    // The number of current sessions is the fifth field.
    const sessions = async (): Promise<string | undefined> =>
      (await ask('show stat'))
        .split('\n')
        .find((row) => row.startsWith(`markbridge,${name},`))
        ?.split(',')[4]
    while (!isIn && (await sessions()) !== '0') await delay(20)
  },
}

/**
 * Returns why the tests of this load balancer are skipped, for `describe.skipIf`, or `undefined` if it is installed. Prints the reason once
 * on standard error.
 */
export function missingBalancer({ program }: Balancer): string | undefined {
  if (findProgram(program) !== undefined) return undefined
  console.warn(`SKIPPED: tests that need ${program} (Debian: apt-get install ${program}).`)
  return `${program} is not installed`
}

/** A running load balancer. */
export interface RunningBalancer {
  readonly port: number
  /** Returns the log so far: accesses and errors. */
  readonly logged: () => string
  /** Takes the instance on this port out of rotation, or puts it back. */
  readonly rotate: (port: number, isIn: boolean) => Promise<void>
}

/** Starts the load balancer with its file of `deploy/` in front of the adapters on these ports, until the end of the test. */
export async function startBalancer(
  balancer: Balancer,
  ...adapterPorts: readonly number[]
): Promise<RunningBalancer> {
  const folder = mkdtempSync(join(tmpdir(), `markbridge-${balancer.program}-`))
  const port = await freePort()
  const path = fileURLToPath(new URL(`../../../deploy/${balancer.file}`, import.meta.url))
  const configFile = join(folder, balancer.file)
  writeFileSync(configFile, balancer.adapt(readFileSync(path, 'utf8'), { port, adapterPorts, folder }))
  const child = spawn(findProgram(balancer.program) ?? '', balancer.args(configFile, folder), {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit')
  const kill = (): void => void child.kill('SIGTERM')
  // An aborted run must not leave a server behind.
  process.once('exit', kill)
  onTestFinished(async () => {
    process.off('exit', kill)
    kill()
    await exited
    rmSync(folder, { recursive: true, force: true })
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (printed += chunk.toString('utf8')))
  const file = join(folder, 'log')
  const logged = (): string => printed + (existsSync(file) ? readFileSync(file, 'utf8') : '')
  await untilListening(child, port, logged)
  const rotate = (instance: number, isIn: boolean): Promise<void> =>
    balancer.rotate({ folder, configFile, process: child }, instance, isIn)
  return { port, logged, rotate }
}

/**
 * Creates a replacement function for `replaceEach`, which returns the addresses of the ports in turn and starts again after the last port.
 */
function inOrder(ports: readonly number[]): () => string {
  let next = 0
  return () => `127.0.0.1:${ports[next++ % ports.length]}`
}

/** Replaces every match of each pattern. Throws if a pattern has no match, because the file in `deploy/` no longer fits this test. */
function replaceEach(text: string, changes: readonly (readonly [RegExp, string | (() => string)])[]): string {
  return changes.reduce((before, [pattern, replacement]) => {
    const after = before.replaceAll(
      pattern,
      typeof replacement === 'string' ? () => replacement : replacement,
    )
    if (after === before) throw new Error(`${String(pattern)} is not in the file of deploy/`)
    return after
  }, text)
}

async function untilListening(child: ChildProcess, port: number, logged: () => string): Promise<void> {
  const endMs = performance.now() + START_MS
  while (!(await isListening(port))) {
    if (child.exitCode !== null || performance.now() > endMs) {
      throw new Error(`the load balancer did not start: ${logged().slice(-4_000)}`)
    }
    await delay(10)
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => {
      resolve(false)
    })
  })
}
