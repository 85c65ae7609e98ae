import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

import type { Random } from '../../../src/sandbox/random.ts'
import { freePort } from '../../support/free-port.ts'
import type { AdapterPlace } from '../damage/damage-journal.ts'
import { type Failpoint, failpointKinds } from '../failpoints/failpoint.ts'
import { type Life, type LifeEnd, startLife } from './run-life.ts'

/** How processes are killed. All draws come from `random`. */
export interface KillPlan {
  readonly random: Random
  /** Share of the processes that kill themselves at a failpoint, 0 to 1. */
  readonly failpointShare: number
  readonly store: Failpoint['store']
  /** A process lives so long after it was ready: between the first and the second. */
  readonly lifeMs: readonly [number, number]
  /** True: a start may end because the store cannot be reached; then the next one follows. */
  readonly mayMissStore?: boolean
  /** Called when a process is gone, before the next one starts. */
  readonly betweenLives?: (begin: () => Life, place: AdapterPlace) => Promise<void>
  /** Records that a process which is gone has left open. Default: that is not asked. */
  readonly countOpen?: (pid: number) => Promise<number>
}

export interface SupervisorOptions {
  /** Members of the configuration besides `listen`. */
  readonly config: object
  readonly env?: Readonly<Record<string, string>>
  /** Modules that are loaded into the program. */
  readonly imports?: readonly string[]
  /** More arguments of `serve`. */
  readonly args?: readonly string[]
  /** Receives all that its processes log; default: that is not kept. */
  readonly logFile?: string | undefined
  /** Undefined: nobody kills it. */
  readonly plan: KillPlan | undefined
}

/** What happened to the processes so far. */
interface SupervisorCounts {
  readonly kills: number
  /** Kills at a failpoint, among them. */
  readonly failpoints: number
  /** Kills of a process that was ready and left records open, among them. */
  readonly busy: number
  /** Kills before the process was ready, when records waited for their recovery, among them. */
  readonly recovering: number
  /** Mean time from start to ready. */
  readonly startMs: number
  /** Ends that nobody caused, with the last of the log. */
  readonly crashes: readonly string[]
}

/** The adapter as a process that is killed again and again, and started again at once on the same port. */
export interface Supervisor {
  readonly port: number
  readonly url: string
  counts(): SupervisorCounts
  /** The process that lives now; with workers, their parent. */
  pid(): number
  /** Kills it once more; the next process is ready, and lives on. */
  spare(): Promise<void>
  /** Kills the process with SIGTERM and resolves when it is gone. */
  close(): Promise<void>
}

/** A process that did not reach its failpoint in time dies anyway. */
const FAILPOINT_MS = 700
/** Share of the kills that come while the process is still starting, and how much of its start is over then at the least. */
const EARLY_SHARE = 0.1
const EARLY_FROM = 0.6
const READY_MS = 60_000
/** What a start ends with when the journal cannot be reached (docs/operations.md). */
const missedStore = /The journal \S+ cannot be opened/

/** Starts the adapter and begins to kill it. Resolves when the first process is ready; that one is spared until then. */
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
  // JSON is YAML.
  writeFileSync(configFile, JSON.stringify({ listen: { port }, ...config }))
  const starts: number[] = []
  const crashes: string[] = []
  const tally = { kills: 0, failpoints: 0, busy: 0, recovering: 0 }
  let killing = true
  const isKilling = (): boolean => killing
  const begin = (failpoint?: Failpoint): Life =>
    startLife({ configFile, args, failpoint, imports, env, logFile })
  const live = async (plan: KillPlan, life: Life, failpoint: Failpoint | undefined): Promise<void> => {
    const doom = createDoom(plan, failpoint)
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
      await live(plan, current, failpoint)
      if (isKilling()) await plan.betweenLives?.(begin, { url, configFile })
      failpoint = isKilling() ? drawFailpoint(plan) : undefined
      current = begin(failpoint)
    }
  }
  const killer = plan === undefined ? undefined : run(plan)
  let closing = false
  // Where nobody kills it, it must not end by itself.
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
    spare: async () => {
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

/** When a process is killed from outside: early as a share of the time that a start takes, late from its readiness on. */
function createDoom(
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
