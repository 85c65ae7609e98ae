import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

import { onTestFinished } from 'vitest'

import { findProgram } from '../find-program.ts'
import { freePort } from '../free-port.ts'

/** Returns why tests of a pooler are skipped, or `undefined` if PgBouncer is installed. Prints the reason once on standard error. */
export function missingPooler(): string | undefined {
  if (findProgram('pgbouncer') !== undefined) return undefined
  console.warn('SKIPPED: tests that need pgbouncer (Debian: apt-get install pgbouncer).')
  return 'pgbouncer is not installed'
}

const START_MS = 10_000

/** Starts PgBouncer in front of a database until the end of the test, and resolves with the URL through PgBouncer. */
export async function startPooler(
  url: string,
  mode: 'session' | 'transaction' | 'statement',
): Promise<string> {
  const { hostname, port, pathname, username, password } = new URL(url)
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-pooler-'))
  const own = await freePort()
  const database = pathname.slice(1)
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: own,
    auth_type: 'any',
    pool_mode: mode,
    unix_socket_dir: '',
    // Many installations silently drop these start-up parameters, so the journal must not depend on them.
    ignore_startup_parameters: 'options,extra_float_digits',
  }
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    [
      '[databases]',
      `${database} = host=${hostname} port=${port} user=${username} password=${password}`,
      '[pgbouncer]',
      ...Object.entries(settings).map(([name, value]) => `${name} = ${value}`),
    ].join('\n'),
    { mode: 0o644 },
  )
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = spawn(findProgram('pgbouncer') ?? '', ['-q', ...user, file], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (printed += String(text)))
  const ended = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true })
  })
  const untilMs = performance.now() + START_MS
  while (!(await listens(own))) {
    if (child.exitCode !== null || performance.now() > untilMs)
      throw new Error(`PgBouncer did not start: ${printed}`)
    await delay(20)
  }
  const through = new URL(url)
  through.hostname = '127.0.0.1'
  through.port = String(own)
  return through.href
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    return await new Promise((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
  } finally {
    socket.destroy()
  }
}
