import type { ChildProcess } from 'node:child_process'

/** Collects the output of a program. The returned function returns the last 4,000 characters. */
export function collectOutput(child: ChildProcess): () => string {
  let text = ''
  const add = (chunk: Buffer): void => {
    text = (text + chunk.toString('utf8')).slice(-4_000)
  }
  child.stdout?.on('data', add)
  child.stderr?.on('data', add)
  return () => text
}
