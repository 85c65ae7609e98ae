import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

import type { Random } from '../../../src/sandbox/random.ts'

/** Processes that stand still together. */
export interface PauseTarget {
  readonly pids: () => readonly number[]
  /** They never stand still longer. */
  readonly maxMs?: number
}

/** How processes are paused. All draws come from `random`. */
export interface PausePlan {
  readonly random: Random
  readonly targets: readonly PauseTarget[]
  /** Targets that may stand still at the same time. */
  readonly lanes: number
  /** How long a pause lasts: between the first and the second, short ones as often as long ones on a logarithmic scale. */
  readonly lastMs: readonly [number, number]
  /** Time of a lane between two pauses, at most. */
  readonly gapMs: number
}

/** Pauses processes again and again until it is stopped; then all of them run. */
export interface Pauses {
  count(): number
  stop(): Promise<void>
}

/** Starts to pause processes with SIGSTOP and to wake them with SIGCONT, as a debugger, a full host or a suspended VM does. */
export function startPauses({ random, targets, lanes, lastMs: [least, most], gapMs }: PausePlan): Pauses {
  const stopping = new AbortController()
  const { signal } = stopping
  const standing = new Set<PauseTarget>()
  let count = 0
  const wait = (ms: number): Promise<void> => delay(ms, undefined, { signal }).catch(() => undefined)
  const pauseOne = async (): Promise<void> => {
    const free = targets.filter((target) => !standing.has(target))
    const target = free[random.below(Math.max(1, free.length))]
    if (target === undefined) return
    standing.add(target)
    const pids = target.pids().filter((pid) => send(pid, 'SIGSTOP'))
    if (pids.length > 0) count += 1
    await wait(Math.min(target.maxMs ?? Infinity, least * (most / least) ** random.next()))
    for (const pid of pids) send(pid, 'SIGCONT')
    standing.delete(target)
  }
  const run = async (): Promise<void> => {
    const isOver = (): boolean => signal.aborted
    while (!isOver()) {
      await wait(1 + random.below(gapMs))
      if (!isOver()) await pauseOne()
    }
  }
  const running = Array.from({ length: lanes }, run)
  return {
    count: () => count,
    stop: async () => {
      stopping.abort()
      await Promise.all(running)
    },
  }
}

/** The processes that one has started, and those that they have started. */
export function descendantsOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
    return children.map(Number).flatMap((child) => [child, ...descendantsOf(child)])
  } catch {
    return [] // it is gone, or there is no /proc
  }
}

/** False where the process is gone. */
function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}
