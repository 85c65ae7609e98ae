import { readFileSync } from 'node:fs'

import { createRandom, type Random } from '../../../src/sandbox/random.ts'
import { disturb, type Disturbance } from '../disturb.ts'
import type { Scenario } from './scenario.ts'
import type { Instances } from './start-instances.ts'

/** Processes that are paused together. */
interface PauseTarget {
  readonly pids: () => readonly number[]
  readonly maxMs?: number
}

/** The settings of `startPauses`. All random choices come from `random`. */
interface PausePlan {
  readonly random: Random
  readonly targets: readonly PauseTarget[]
  /** The number of lanes. Each lane pauses one target at a time. */
  readonly lanes: number
  /** The shortest and the longest pause. Pauses are drawn on a logarithmic scale. */
  readonly lastMs: readonly [number, number]
  /** The longest time between two pauses of a lane. */
  readonly gapMs: number
}

/**
 * Pauses processes with SIGSTOP and wakes them with SIGCONT, as a debugger, a full host or a suspended VM does, repeatedly until `stop` is
 * called. `stop` wakes all processes.
 */
export function startPauses({
  random,
  targets,
  lanes,
  lastMs: [least, most],
  gapMs,
}: PausePlan): Disturbance {
  const paused = new Set<PauseTarget>()
  const pauseOne = async (wait: (ms: number) => Promise<void>): Promise<boolean> => {
    const free = targets.filter((target) => !paused.has(target))
    const target = free[random.below(Math.max(1, free.length))]
    if (target === undefined) return false
    paused.add(target)
    const pids = target.pids().filter((pid) => send(pid, 'SIGSTOP'))
    await wait(Math.min(target.maxMs ?? Infinity, least * (most / least) ** random.next()))
    for (const pid of pids) send(pid, 'SIGCONT')
    paused.delete(target)
    return pids.length > 0
  }
  const all = Array.from({ length: lanes }, () => disturb(() => 1 + random.below(gapMs), pauseOne))
  return {
    count: () => all.reduce((sum, lane) => sum + lane.count(), 0),
    stop: async () => {
      await Promise.all(all.map((lane) => lane.stop()))
    },
  }
}

/** Returns the child processes of a process, and their child processes. */
export function descendantsOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
    return children.map(Number).flatMap((child) => [child, ...descendantsOf(child)])
  } catch {
    return [] // The process is gone, or there is no /proc.
  }
}

/** Returns false if the process is gone. */
function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

/** The shortest and the longest pause, in leases. */
const LEASES = [0.2, 5] as const
/** Pauses of the service and of the store must end before the adapter times out. */
const MAX_OTHERS_MS = 1_200
const USUAL_LEASE_MS = 10_000

/** Starts the pauses of a scenario, if it has any: of adapters, of workers and their parent, and of the service and the store. */
export function pauseProcesses(
  { pauses, workers = 1, leaseMs = USUAL_LEASE_MS }: Scenario,
  { supervisors, postgres }: Instances,
  service: number,
  seed: number,
): Disturbance | undefined {
  if (pauses === undefined) return undefined
  const adapters = supervisors.flatMap((supervisor): PauseTarget[] => {
    const pid = (): number => supervisor.pid()
    const worker = (number: number): PauseTarget => ({
      pids: () => descendantsOf(pid()).slice(number, number + 1),
    })
    const all: PauseTarget = { pids: () => [pid(), ...descendantsOf(pid())] }
    if (workers === 1) return [all]
    return [all, { pids: () => [pid()] }, ...Array.from({ length: workers }, (_, number) => worker(number))]
  })
  const [least, most] = LEASES
  const server = postgres?.server
  const store = (): number[] => {
    const pid = server?.pid()
    return pid === undefined ? [] : [pid, ...descendantsOf(pid)]
  }
  const others: PauseTarget[] = [
    { pids: () => [service], maxMs: MAX_OTHERS_MS },
    ...(server === undefined ? [] : [{ pids: store, maxMs: MAX_OTHERS_MS }]),
  ]
  return startPauses({
    random: createRandom(seed, 'pauses'),
    targets: pauses.others === true ? [...adapters, ...others] : adapters,
    lanes: pauses.lanes,
    lastMs: [least * leaseMs, most * leaseMs],
    gapMs: pauses.gapMs,
  })
}
