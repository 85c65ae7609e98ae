import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import { onTestFinished } from 'vitest'

import type { Step } from './instance-process.ts'

export interface Instance {
  tell(step: Step): Promise<unknown>
  /** Sends a step. The result that the process prints appears in `lines`. */
  send(step: Step): void
  readonly lines: unknown[]
  /** Kills the process with SIGKILL, and resolves when the process has ended. */
  kill(): Promise<void>
}

const PROGRAM = fileURLToPath(new URL('./instance-process.ts', import.meta.url))

/** Starts a process on a journal and kills it at the end of the test. */
export async function startInstance(url: string): Promise<Instance> {
  const child = spawn(process.execPath, [PROGRAM, url], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines: unknown[] = []
  const waiting: ((line: unknown) => void)[] = []
  createInterface({ input: child.stdout }).on('line', (text) => {
    const line: unknown = JSON.parse(text)
    lines.push(line)
    waiting.shift()?.(line)
  })
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await gone
  }
  onTestFinished(kill)
  const answer = (): Promise<unknown> => new Promise((resolve) => waiting.push(resolve))
  const ready = answer()
  const send = (step: Step): void => {
    child.stdin.write(`${JSON.stringify(step)}\n`)
  }
  await Promise.race([
    ready,
    gone.then(() => {
      throw new Error('the process ended before it was ready')
    }),
  ])
  return {
    tell: (step) => {
      const answered = answer()
      send(step)
      return answered
    },
    send,
    lines,
    kill,
  }
}
