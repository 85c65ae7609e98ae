import { setTimeout as delay } from 'node:timers/promises'

import type { EffectEntry } from '../../../src/sandbox/control/effects.ts'
import { createRandom } from '../../../src/sandbox/random.ts'
import { startCli } from '../../cli/run-cli.ts'
import { type Checked, checkHistory } from '../check/check-history.ts'
import { startLoad, usualLoad } from '../load/load.ts'
import type { Samples } from '../load/write.ts'
import { drawFaults } from '../proxy/fault.ts'
import { type FaultCounts, type FaultProxy, startFaultProxy } from '../proxy/fault-proxy.ts'
import type { Supervisor, SupervisorCounts } from '../supervisor/supervisor.ts'
import { startStoreCrashes } from './crash-store.ts'
import type { Scenario } from './scenario.ts'
import { settle } from './settle.ts'
import { startInstances } from './start-instances.ts'
import { startStorms } from './storms.ts'

/** When a run ends: after this time, or earlier when so many processes were killed. */
export interface RunBounds {
  readonly seed: number
  readonly forMs: number
  readonly kills?: number
  /** When the faults are over, every record must be final within this time, for its client and in the journal. */
  readonly settleMs: number
}

/** What happened in a run. */
export interface RunResult extends Checked, Omit<SupervisorCounts, 'startMs'> {
  readonly name: string
  readonly seed: number
  /** Mean time of all adapters from start to ready. */
  readonly startMs: number
  /** Connections, requests and replies that were broken or held up. */
  readonly broken: number
  readonly storms: number
  readonly storeCrashes: number
  readonly records: number
  readonly replays: number
  /** From the end of the faults until every record was final. */
  readonly settledMs: number
}

/** What a write may still do in the background when every client has its answer shows within this time. */
const GRACE_MS = 1_500

/** Runs one scenario: real processes, a real store, the sandbox as a process of its own. */
export async function runScenario(scenario: Scenario, bounds: RunBounds): Promise<RunResult> {
  const { seed } = bounds
  const { onExisting = 'replace', service = [] } = scenario
  const closing: (() => Promise<unknown>)[] = []
  try {
    const sandbox = startCli(['sandbox', '--port', '0', '--on-existing', onExisting, ...service])
    closing.push(() => sandbox.stop())
    const sandboxUrl = /ready (\S+)/.exec(await sandbox.until(/ready \S+\n/))?.[1] ?? ''
    const behind = await startFaultProxy({
      targets: [Number(new URL(sandboxUrl).port)],
      plan: drawFaults(createRandom(seed, 'behind'), scenario.behind ?? {}),
    })
    closing.push(() => behind.close())
    const instances = await startInstances(scenario, behind.url, seed)
    closing.push(() => instances.close())
    const { supervisors, postgres, storeWay } = instances
    const before = await startFaultProxy({
      targets: supervisors.map(({ port }) => port),
      plan: drawFaults(createRandom(seed, 'before'), scenario.before ?? {}),
    })
    closing.push(() => before.close())
    const proxies = [before, behind, ...(storeWay === undefined ? [] : [storeWay])]
    const samples = await readSamples(sandboxUrl, scenario.lastEvents)
    const load = startLoad({ ...usualLoad, ...scenario.load, seed, url: before.url, samples })
    closing.push(() => load.close())
    const storms = startStorms(sandboxUrl, scenario.storms ?? [], createRandom(seed, 'storms'))
    const server = postgres?.server
    const crashes =
      server === undefined || scenario.storeLivesMs === undefined
        ? undefined
        : startStoreCrashes(server, scenario.storeLivesMs)

    await untilOver(bounds, () => countAll(supervisors).kills)
    await storms.stop()
    await crashes?.stop()
    for (const proxy of proxies) proxy.stopFaults()
    await Promise.all(supervisors.map((each) => each.spare()))
    const check = async (): Promise<Checked> =>
      checkHistory(load.history(), (await readJson(`${sandboxUrl}/_sandbox/effects`)) as EffectEntry[], {
        oneMark: onExisting === 'conflict',
      })
    const metricsUrl = scenario.store === 'none' ? undefined : `${supervisors[0]?.url ?? ''}/metrics`
    const { settledMs, ledger } = await settle(load, check, metricsUrl, bounds.settleMs)
    await delay(GRACE_MS)
    const history = load.history()
    const { findings, overtaken } = await check()
    return {
      name: scenario.name,
      seed,
      ...countAll(supervisors),
      broken: countBroken(proxies),
      storms: storms.count(),
      storeCrashes: crashes?.count() ?? 0,
      records: history.writes.length,
      replays: history.replays,
      overtaken,
      findings: [...findings, ...ledger],
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

function countAll(supervisors: readonly Supervisor[]): SupervisorCounts {
  const counts = supervisors.map((each) => each.counts())
  const total = (name: Exclude<keyof SupervisorCounts, 'crashes'>): number =>
    sum(counts.map((each) => each[name]))
  return {
    kills: total('kills'),
    failpoints: total('failpoints'),
    busy: total('busy'),
    beforeReady: total('beforeReady'),
    recovering: total('recovering'),
    startMs: total('startMs') / counts.length,
    crashes: counts.flatMap((each) => each.crashes),
  }
}

/** The last events alone, where the others have marks already. */
async function readSamples(sandboxUrl: string, lastEvents = Infinity): Promise<Samples> {
  const samples = (await readJson(`${sandboxUrl}/_sandbox/samples`)) as Samples
  return { ...samples, events: samples.events.slice(-lastEvents) }
}

async function readJson(url: string): Promise<unknown> {
  return (await fetch(url)).json()
}

function countBroken(proxies: readonly FaultProxy[]): number {
  const kinds: (keyof FaultCounts)[] = [
    'refuse', 'cut', 'halt', 'resetBefore', 'resetAfter', 'truncate',
  ] // prettier-ignore
  return sum(proxies.flatMap((proxy) => kinds.map((kind) => proxy.counts()[kind])))
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
