import { type Finding, runFuzz } from './drive.ts'
import type { Target } from './start-target.ts'

export interface FuzzRun {
  readonly seed: number
  readonly requests: number
  /** The number of requests between two memory measurements. */
  readonly piece: number
  readonly concurrency: number
  readonly onPiece?: (line: string) => void
}

export interface FuzzReport {
  readonly statuses: Readonly<Record<string, number>>
  readonly findings: readonly Finding[]
  readonly internalErrors: readonly string[]
  /** The memory of the adapter after each piece, in MiB. */
  readonly memoryMiB: readonly number[]
}

/** Sends all requests of a run to a target, `piece` requests at a time, and measures memory after each piece. */
export async function runPieces(target: Target, run: FuzzRun): Promise<FuzzReport> {
  const { seed, requests, piece, concurrency, onPiece } = run
  const { port, seeds } = target
  const totals = new Map<number, number>()
  const findings: Finding[] = []
  const memoryMiB: number[] = []
  for (let first = 0; first < requests; first += piece) {
    const last = Math.min(requests, first + piece)
    const result = await runFuzz({ port, seeds, seed, first, last, concurrency })
    for (const [status, count] of result.statuses) totals.set(status, (totals.get(status) ?? 0) + count)
    findings.push(...result.findings)
    const memory = await target.memoryMiB()
    if (memory !== undefined) memoryMiB.push(Math.round(memory))
    onPiece?.(`${last} requests, ${findings.length} findings, ${memoryMiB.at(-1) ?? '?'} MiB`)
  }
  const statuses = Object.fromEntries([...totals].sort(([one], [other]) => one - other))
  return { statuses, findings, internalErrors: target.internalErrors(), memoryMiB }
}

/**
 * Returns the growth of memory in MiB: the lowest value of the last third minus the highest value of the first third. The result is
 * negative if memory shrank.
 */
export function growthMiB(memoryMiB: readonly number[]): number {
  const third = Math.ceil(memoryMiB.length / 3)
  return Math.min(...memoryMiB.slice(-third)) - Math.max(...memoryMiB.slice(0, third))
}
