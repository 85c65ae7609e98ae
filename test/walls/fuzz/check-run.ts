import { type Finding, runFuzz } from './drive.ts'
import type { Target } from './start-target.ts'

export interface FuzzRun {
  readonly seed: number
  readonly requests: number
  /** After so many requests the memory is read. */
  readonly piece: number
  readonly concurrency: number
  readonly onPiece?: (line: string) => void
}

/** What a whole run came to. */
export interface FuzzReport {
  readonly statuses: Readonly<Record<string, number>>
  readonly findings: readonly Finding[]
  readonly internalErrors: readonly string[]
  /** Memory of the adapter after each piece, MiB. */
  readonly memoryMiB: readonly number[]
}

/** Sends all requests of a run to a target, a piece at a time. */
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

/** Growth of memory, MiB: the lowest figure of the last third above the highest of the first one; negative where it shrank. */
export function growthMiB(memoryMiB: readonly number[]): number {
  const third = Math.ceil(memoryMiB.length / 3)
  return Math.min(...memoryMiB.slice(-third)) - Math.max(...memoryMiB.slice(0, third))
}
