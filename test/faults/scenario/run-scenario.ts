import { setTimeout as delay } from 'node:timers/promises'

import type { EffectEntry } from '../../../src/sandbox/control/effects.ts'
import { createRandom } from '../../../src/sandbox/random.ts'
import { startCli } from '../../cli/run-cli.ts'
import { type Checked, checkHistory, type Finding } from '../check/check-history.ts'
import { checkLedger } from '../check/check-ledger.ts'
import { type Load, startLoad, usualLoad } from '../load/load.ts'
import type { Samples } from '../load/write.ts'
import { drawFaults } from '../proxy/fault.ts'
import { type FaultCounts, type FaultProxy, startFaultProxy } from '../proxy/fault-proxy.ts'
import type { Scenario } from './scenario.ts'
import { type Instances, startInstances } from './start-instances.ts'
import { startStoreCrashes } from './crash-store.ts'
import { startStorms } from './storms.ts'

/** When a run ends: after this time, or earlier when so many processes were killed. */
export interface RunBounds {
  readonly seed: number
  readonly forMs: number
  readonly kills?: number
  /** How long clients go on asking for final answers when the faults are over. */
  readonly settleMs: number
}

/** What happened in a run. */
export interface RunResult extends Checked {
  readonly name: string
  readonly seed: number
  readonly kills: number
  readonly failpoints: number
  readonly startMs: number
  /** Connections, requests and replies that were broken. */
  readonly broken: number
  readonly storms: number
  readonly storeCrashes: number
  readonly records: number
  readonly replays: number
  /** Ends of a process that nobody caused. */
  readonly crashes: readonly string[]
  /** From the end of the faults until every record had its final answer. */
  readonly settledMs: number
}

/** What a write may still do in the background when every client has its answer shows within this time. */
const GRACE_MS = 1_500
/** Between two questions for final answers. */
const SETTLE_PAUSE_MS = 200

/** Runs one scenario: real processes, a real store, the sandbox as a process of its own. */
export async function runScenario(scenario: Scenario, bounds: RunBounds): Promise<RunResult> {
  const { seed } = bounds
  const closing: (() => Promise<unknown>)[] = []
  try {
    const sandbox = startCli(['sandbox', '--port', '0', '--on-existing', scenario.onExisting ?? 'replace'])
    closing.push(() => sandbox.stop())
    const sandboxUrl = /ready (\S+)/.exec(await sandbox.until(/ready \S+\n/))?.[1] ?? ''
    const behind = await startFaultProxy({
      targets: [Number(new URL(sandboxUrl).port)],
      plan: drawFaults(createRandom(seed, 'behind'), scenario.behind ?? {}),
    })
    closing.push(() => behind.close())
    const instances = await startInstances(scenario, behind.url, seed)
    closing.push(() => instances.close())
    const before = await startFaultProxy({
      targets: instances.supervisors.map(({ port }) => port),
      plan: drawFaults(createRandom(seed, 'before'), scenario.before ?? {}),
    })
    closing.push(() => before.close())
    const samples = (await readJson(`${sandboxUrl}/_sandbox/samples`)) as Samples
    const load = startLoad({ ...usualLoad, ...scenario.load, seed, url: before.url, samples })
    closing.push(() => load.close())
    const storms = startStorms(sandboxUrl, scenario.storms ?? [], createRandom(seed, 'storms'))
    const server = instances.postgres?.server
    const crashes =
      server === undefined || scenario.storeLivesMs === undefined
        ? undefined
        : startStoreCrashes(server, scenario.storeLivesMs)

    await untilOver(bounds, () => sum(instances.supervisors.map((each) => each.counts().kills)))
    await storms.stop()
    await crashes?.stop()
    for (const proxy of [before, behind]) proxy.stopFaults()
    await Promise.all(instances.supervisors.map((each) => each.spare()))
    const check = async (): Promise<Checked> =>
      checkHistory(load.history(), (await readJson(`${sandboxUrl}/_sandbox/effects`)) as EffectEntry[])
    const settledMs = await settle(load, check, bounds.settleMs)
    await delay(GRACE_MS)
    const counts = instances.supervisors.map((each) => each.counts())
    const history = load.history()
    const { findings, overtaken } = await check()
    return {
      name: scenario.name,
      seed,
      kills: sum(counts.map((each) => each.kills)),
      failpoints: sum(counts.map((each) => each.failpoints)),
      startMs: sum(counts.map((each) => each.startMs)) / counts.length,
      broken: countBroken([before, behind]),
      storms: storms.count(),
      storeCrashes: crashes?.count() ?? 0,
      records: history.writes.length,
      replays: history.replays,
      overtaken,
      findings:
        scenario.store === 'none'
          ? findings
          : [...findings, ...(await readLedger(instances, bounds.settleMs))],
      crashes: counts.flatMap((each) => each.crashes),
      settledMs,
    }
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

async function untilOver({ forMs, kills }: RunBounds, killed: () => number): Promise<void> {
  const endMs = performance.now() + forMs
  while (performance.now() < endMs && (kills === undefined || killed() < kills)) await delay(50)
}

/** The clients finish what they are at and ask again until all is final; resolves with the time that it took, ms. */
async function settle(load: Load, check: () => Promise<Checked>, withinMs: number): Promise<number> {
  const startedMs = performance.now()
  const takenMs = (): number => performance.now() - startedMs
  await load.stop()
  for (;;) {
    await load.sendOpen()
    const { findings } = await check()
    if (takenMs() > withinMs || findings.every(({ kind }) => kind !== 'unsettled')) return takenMs()
    await delay(SETTLE_PAUSE_MS)
  }
}

/** What is wrong with the ledger when the background, too, has had the time to finish. */
async function readLedger({ supervisors: [first] }: Instances, withinMs: number): Promise<Finding[]> {
  const endMs = performance.now() + withinMs
  for (;;) {
    const findings = checkLedger(await (await fetch(`${first?.url ?? ''}/metrics`)).text())
    if (findings.length === 0 || performance.now() > endMs) return findings
    await delay(SETTLE_PAUSE_MS)
  }
}

async function readJson(url: string): Promise<unknown> {
  return (await fetch(url)).json()
}

function countBroken(proxies: readonly FaultProxy[]): number {
  const kinds: (keyof FaultCounts)[] = ['refuse', 'cut', 'resetBefore', 'resetAfter', 'truncate']
  return sum(proxies.flatMap((proxy) => kinds.map((kind) => proxy.counts()[kind])))
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
