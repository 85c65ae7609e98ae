import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { describe, expect, onTestFinished, test, vi } from 'vitest'

import { makeFolder } from '../journal/open-sqlite.ts'
import { findProgram } from '../support/find-program.ts'
import { mainOfCli } from '../support/main-of-cli.ts'

const patient = { timeout: 120_000 }

interface Served {
  readonly child: ChildProcess
  /** Sends this many requests that the adapter refuses, each of which adds one line to the log. */
  readonly logLines: (count: number) => Promise<void>
  readonly metric: (name: string) => Promise<number>
  readonly stop: () => Promise<unknown>
}

/** Starts `serve` with the given standard error, and waits until it is ready. `command`, if given, is a program that starts `serve`. */
async function serve(
  stderr: 'pipe' | number,
  { flags = [], command = [] }: { flags?: string[]; command?: string[] } = {},
): Promise<Served> {
  const journal = `sqlite:${join(await makeFolder(), 'journal.db')}`
  const args = [
    mainOfCli,
    'serve',
    '--v3',
    'http://127.0.0.1:1',
    '--port',
    '0',
    '--journal',
    journal,
    ...flags,
  ]
  const [program = process.execPath, ...rest] = [...command, process.execPath, ...args]
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', stderr] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  let printed = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (printed += text))
  await vi.waitFor(() => expect(printed).toMatch(/ready \S+\n/), 60_000)
  const url = /ready (\S+)/.exec(printed)?.[1] ?? ''
  return {
    child,
    logLines: async (count) => {
      for (let sent = 0; sent < count; sent += 50)
        await Promise.all(
          Array.from({ length: 50 }, async () => {
            const reply = await fetch(`${url}/elsewhere`)
            await reply.text()
            expect(reply.status).toBe(401)
          }),
        )
    },
    metric: async (name) => {
      const page = await (await fetch(`${url}/metrics`)).text()
      return Number(new RegExp(`^markbridge_${name} (.*)$`, 'm').exec(page)?.[1])
    },
    stop: async () => {
      child.kill('SIGTERM')
      return exited
    },
  }
}

/** A number of log lines that exceeds the buffers of the log writer and of a pipe. */
const MANY = 14_000

describe('serve with a log that cannot be written', () => {
  test.skipIf(process.platform !== 'linux').each(['json', 'text'])(
    'keeps serving, counts lost lines and stops on SIGTERM while the disk under standard error is full (log format %s)',
    patient,
    async (format) => {
      const { logLines, metric, stop } = await serve(openSync('/dev/full', 'w'), {
        flags: ['--log-format', format],
      })
      await logLines(MANY)
      expect(await metric('log_lines_dropped')).toBeGreaterThan(0)
      expect(await stop()).toEqual([0, null])
    },
  )

  test(
    'keeps serving while nothing reads standard error, and resumes its log when a reader returns',
    patient,
    async () => {
      const { child, logLines, metric, stop } = await serve('pipe')
      await logLines(MANY)
      const dropped = await metric('log_lines_dropped')
      expect(dropped).toBeGreaterThan(0)
      let log = ''
      child.stderr?.setEncoding('utf8').on('data', (text: string) => (log += text))
      await vi.waitFor(() => expect(log).toContain('"msg":"log lines dropped"'), 30_000)
      await logLines(50)
      expect(await stop()).toEqual([0, null])
      // Each line is complete, and the numbers of written and dropped lines add up to the number of requests.
      const lines = log
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { msg: string; lines?: number })
      const lost = lines.reduce((sum, line) => sum + (line.lines ?? 0), 0)
      expect(lost).toBe(dropped)
      expect(lines.filter(({ msg }) => msg === 'request refused')).toHaveLength(MANY + 50 - lost)
      expect(lines.at(-1)?.msg).toBe('stopped')
    },
  )

  test('stops on SIGTERM while the reader of standard error stalls', patient, async () => {
    const { logLines, stop } = await serve('pipe')
    await logLines(MANY)
    expect(await stop()).toEqual([0, null])
  })

  const python = findProgram('python3')
  test.skipIf(python === undefined)(
    python === undefined
      ? 'SKIPPED, python3 is not installed: keeps serving while a terminal is stopped'
      : 'keeps serving, and stops on SIGTERM, while the terminal under standard error is stopped with Ctrl+S',
    patient,
    async () => {
      // Opens a terminal and suspends its output, as Ctrl+S does, before the program writes to it.
      const inTerminal = `
import os, pty, signal, subprocess, sys, termios
main, terminal = pty.openpty()
termios.tcflow(terminal, termios.TCOOFF)
child = subprocess.Popen(sys.argv[1:], stderr=terminal)
signal.signal(signal.SIGTERM, lambda *_: child.terminate())
sys.exit(child.wait())`
      const { logLines, stop } = await serve('pipe', {
        flags: ['--log-format', 'text'],
        command: [python ?? '', '-c', inTerminal],
      })
      await logLines(500)
      expect(await stop()).toEqual([0, null])
    },
  )
})

test.skipIf(process.platform !== 'linux')(
  'a command exits with status 1 and prints the reason on standard error if standard output cannot be written',
  patient,
  async () => {
    const batch = fileURLToPath(new URL('../../fixtures/class-register/body.txt', import.meta.url))
    const child = spawn(process.execPath, [mainOfCli, 'check', batch], {
      stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
    })
    let printed = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (printed += text))
    expect([await once(child, 'close'), printed]).toEqual([
      [1, null],
      'markbridge: standard output cannot be written (ENOSPC), so output is missing.\n',
    ])
  },
)
