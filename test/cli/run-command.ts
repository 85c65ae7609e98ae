import { Console } from 'node:console'
import { Readable, Writable } from 'node:stream'

import { run } from '../../src/cli/program.ts'
import type { CliResult } from './run-cli.ts'

/** Resolves when the latest command has ended. Commands run one after the other, because they share standard output. */
let last: Promise<unknown> = Promise.resolve()

/**
 * Runs a command like `runCli`, but in this process, because starting a process takes longer than most commands. Tests of the program as a
 * process (built files, signals, pipes, workers) use `runCli` and `startCli`.
 */
export function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input = '',
): Promise<CliResult> {
  const result = last.then(() => runHere(args, env, input))
  last = result.catch(() => undefined)
  return result
}

async function runHere(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input: string,
): Promise<CliResult> {
  const [stdout, stderr] = [collect(), collect()]
  const stdin = Readable.from(input === '' ? [] : [Buffer.from(input)])
  const restore = [
    replace(process, { stdin, stdout: stdout.stream, stderr: stderr.stream }),
    replace(globalThis, { console: new Console(stdout.stream, stderr.stream) }),
    replace(process, { env: { ...process.env, ...env } }),
    forgetSignals(),
  ]
  try {
    const status = await run([process.execPath, 'markbridge', ...args])
    return { status, stdout: stdout.text(), stderr: stderr.text() }
  } finally {
    for (const back of restore) back()
  }
}

function collect(): { stream: Writable; text: () => string } {
  const chunks: Buffer[] = []
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(chunk)
      done()
    },
  })
  return { stream, text: () => Buffer.concat(chunks).toString() }
}

/** Replaces properties. Returns a function that restores them. */
function replace(target: object, values: Readonly<Record<string, unknown>>): () => void {
  const names = Object.keys(values)
  const before = names.map((name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const)
  for (const name of names)
    Object.defineProperty(target, name, { value: values[name], configurable: true, writable: true })
  return () => {
    for (const [name, descriptor] of before)
      if (descriptor !== undefined) Object.defineProperty(target, name, descriptor)
  }
}

/** Returns a function that removes the signal handlers added after this call, as the end of a process would. */
function forgetSignals(): () => void {
  const signals = ['SIGINT', 'SIGTERM'] as const
  const before = signals.map((signal) => process.listeners(signal))
  return () => {
    for (const [index, signal] of signals.entries()) {
      for (const listener of process.listeners(signal))
        if (before[index]?.includes(listener) !== true) process.off(signal, listener)
    }
  }
}
