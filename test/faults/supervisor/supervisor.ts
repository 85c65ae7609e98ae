import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

import type { Random } from '../../../src/sandbox/random.ts'
import { freePort } from '../../support/free-port.ts'
import type { AdapterPlace } from '../damage/damage-journal.ts'
import { type Failpoint, failpointKinds } from '../failpoints/failpoint.ts'
import { type Life, type LifeEnd, startLife } from './run-life.ts'

/** How processes are killed. All random choices come from `random`. */
export interface KillPlan {
  readonly random: Random
  /** The share of processes that kill themselves at a failpoint, from 0 to 1. */
  readonly failpointShare: number
  readonly store: Failpoint['store']
  /** The shortest and the longest life of a process after it is ready. */
  readonly lifeMs: readonly [number, number]
  /** True if a start may fail because the store is unreachable. The supervisor then starts the next process. */
  readonly mayMissStore?: boolean
  /** Called when a process has ended, before the next one starts. */
  readonly betweenLives?: (begin: () => Life, place: AdapterPlace) => Promise<void>
  /** Returns the number of records that a process left open. Default: the records are not counted. */
  readonly countOpen?: (pid: number) => Promise<number>
}

export interface SupervisorOptions {
  /** Members of the configuration besides `listen`. */
  readonly config: object
  readonly env?: Readonly<Record<string, string>>
  readonly imports?: readonly string[]
  readonly args?: readonly string[]
  /** Receives the log of all its processes. Default: the log is discarded. */
  readonly logFile?: string | undefined
  /** How the process is killed, or `undefined` if it is not. */
  readonly plan: KillPlan | undefined
}

interface SupervisorCounts {
  readonly kills: number
  /** Included in the kills: kills at a failpoint. */
  readonly failpoints: number
  /** Included in the kills: kills of a process that was ready and left records open. */
  readonly busy: number
  /** Included in the kills: kills before the process was ready, while records waited for recovery. */
  readonly recovering: number
  /** The mean time from start to ready. */
  readonly startMs: number
  /** Unexpected ends, with the last lines of the log. */
  readonly crashes: readonly string[]
}

/** The adapter as a process that is repeatedly killed and at once restarted on the same port. */
export interface Supervisor {
  readonly port: number
  readonly url: string
  counts(): SupervisorCounts
  /** Returns the id of the current process, which is the parent if there are workers. */
  pid(): number
  /** Kills the process once more, and resolves when the next process is ready. The next process is not killed. */
  stopKilling(): Promise<void>
  close(): Promise<void>
}

/** The time after which a process that did not reach its failpoint is killed anyway. */
const FAILPOINT_MS = 700
/**
 * EARLY_SHARE is the share of kills while the process is still starting. Such a kill waits for at least the fraction EARLY_FROM of the
 * previous start time.
 */
const EARLY_SHARE = 0.1
const EARLY_FROM = 0.6
const READY_MS = 60_000
/** The error of a start that failed because the journal was unreachable (docs/operations.md). */
const missedStore = /The journal \S+ cannot be opened/

/**
 * Starts the adapter, and kills and restarts its process as planned. Resolves when the first process is ready, because no process is killed
 * before that.
 */
export async function startSupervisor({
  config,
  env = {},
  imports = [],
  args = [],
  logFile,
  plan,
}: SupervisorOptions): Promise<Supervisor> {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-supervisor-'))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const configFile = join(folder, 'markbridge.yaml')
  // JSON is valid YAML.
  writeFileSync(configFile, JSON.stringify({ listen: { port }, ...config }))
  const starts: number[] = []
  const crashes: string[] = []
  const tally = { kills: 0, failpoints: 0, busy: 0, recovering: 0 }
  let killing = true
  const isKilling = (): boolean => killing
  const begin = (failpoint?: Failpoint): Life =>
    startLife({ configFile, args, failpoint, imports, env, logFile })
  const superviseLife = async (
    plan: KillPlan,
    life: Life,
    failpoint: Failpoint | undefined,
  ): Promise<void> => {
    const doom = drawKillTimes(plan, failpoint)
    const early =
      doom.earlyShare === undefined ? undefined : killAfter(life, doom.earlyShare * (starts.at(-1) ?? 0))
    const startMs = await life.ready
    if (startMs !== undefined) starts.push(startMs)
    early?.cancel()
    const late = startMs === undefined ? undefined : killAfter(life, doom.lateMs)
    const end = await life.ended
    late?.cancel()
    const byUs = early?.struck() === true || late?.struck() === true
    if (end.signal !== 'SIGKILL') {
      const missed = plan.mayMissStore === true && startMs === undefined && missedStore.test(end.log)
      if (!missed) crashes.push(describeEnd(end))
      return
    }
    const leftOpen = ((await plan.countOpen?.(life.pid)) ?? 0) > 0
    tally.kills += 1
    if (!byUs) tally.failpoints += 1
    if (leftOpen) tally[startMs === undefined ? 'recovering' : 'busy'] += 1
  }
  let current = begin()
  const firstMs = await current.ready
  if (firstMs === undefined) throw new Error(`the adapter did not start: ${(await current.ended).log}`)
  starts.push(firstMs)
  const run = async (plan: KillPlan): Promise<void> => {
    let failpoint: Failpoint | undefined
    while (isKilling()) {
      await superviseLife(plan, current, failpoint)
      if (isKilling()) await plan.betweenLives?.(begin, { url, configFile })
      failpoint = isKilling() ? drawFailpoint(plan) : undefined
      current = begin(failpoint)
    }
  }
  const killer = plan === undefined ? undefined : run(plan)
  let closing = false
  // A process that is not killed must not end by itself.
  if (plan === undefined) {
    void current.ended.then((end) => {
      if (!closing) crashes.push(describeEnd(end))
    })
  }
  const endKilling = async (): Promise<void> => {
    if (killing && killer !== undefined) current.kill('SIGKILL')
    killing = false
    await killer
  }
  return {
    port,
    url,
    pid: () => current.pid,
    counts: () => ({ ...tally, startMs: mean(starts), crashes }),
    stopKilling: async () => {
      await endKilling()
      const ready = await Promise.race([current.ready, delay(READY_MS, undefined, { ref: false })])
      if (ready === undefined) throw new Error(`the adapter did not start: ${(await current.ended).log}`)
    },
    close: async () => {
      closing = true
      await endKilling()
      current.kill('SIGTERM')
      const closed = await Promise.race([current.ended, delay(READY_MS, undefined, { ref: false })])
      if (closed === undefined) current.kill('SIGKILL')
      await current.ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function drawFailpoint({ random, failpointShare, store }: KillPlan): Failpoint | undefined {
  if (!random.chance(failpointShare)) return undefined
  return { kind: random.pick(failpointKinds), nth: 1 + random.below(40), store }
}

/**
 * Returns when a process is killed from outside: an early kill after a fraction of the previous start time, or a late kill `lateMs` after
 * the process is ready.
 */
function drawKillTimes(
  { random, lifeMs: [least, most] }: KillPlan,
  failpoint: Failpoint | undefined,
): { earlyShare: number | undefined; lateMs: number } {
  const earlyShare = random.chance(EARLY_SHARE) ? EARLY_FROM + (1 - EARLY_FROM) * random.next() : undefined
  const lateMs = least + random.below(Math.max(1, most - least))
  return failpoint === undefined ? { earlyShare, lateMs } : { earlyShare: undefined, lateMs: FAILPOINT_MS }
}

function killAfter(life: Life, ms: number): { struck: () => boolean; cancel: () => void } {
  let struck = false
  const timer = setTimeout(() => {
    struck = true
    life.kill('SIGKILL')
  }, ms)
  return { struck: () => struck, cancel: () => clearTimeout(timer) }
}

function describeEnd({ status, signal, log }: LifeEnd): string {
  return `ended ${String(status ?? signal)}: ${log}`
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
}
